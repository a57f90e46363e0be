// Requests to /v1/responses, which have another form than chat requests. The chat forms are those
// that llama-server makes: the tokens of its slots were compared.
#include <gtest/gtest.h>

#include "daemon/requests/completion_request.h"
#include "daemon/testing/form_expectation.h"

namespace kvkeep::daemon {
namespace {

TEST(ResponsesRequest, IsAChatOfItsTexts) {
  const FormCase kCases[] = {
      {R"({"input":"Hi","stream":true})", R"({"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"model":"m","instructions":"S","input":"Hi","tools":[],"reasoning":{}})",
       R"({"model":"m","messages":[{"role":"system","content":"S"},
           {"role":"user","content":"Hi"}]})"},
      {R"({"instructions":null,"input":"Hi"})",
       R"({"messages":[{"role":"system","content":""},{"role":"user","content":"Hi"}]})"},
      {R"({"input":[{"role":"user","content":"Hi"},
           {"type":"message","role":"assistant","id":"i","status":"completed",
            "content":[{"type":"output_text","text":"A","annotations":[]}]},
           {"role":"developer","content":[{"type":"input_text","text":"B"}]}]})",
       R"({"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},
           {"role":"assistant","id":"i","content":[{"type":"text","text":"A"}]},
           {"role":"developer","content":[{"type":"text","text":"B"}]}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kResponses, c.body, c.result);
}

TEST(ResponsesRequest, ToolsAreFunctionsAndOthersAreLeftOut) {
  const FormCase kCases[] = {
      {R"({"tools":[{"type":"function","name":"f","parameters":{"z":1,"a":2},"strict":false},
           {"type":"web_search"},{"type":"function","name":"g"}],"input":"a",
           "tool_choice":"required"})",
       R"({"tool_choice":"required","messages":[{"role":"user","content":"a"}],
           "tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2},
                                                   "strict":false}},
                    {"type":"function","function":{"name":"g","strict":true}}]})"},
      {R"({"tools":[{"type":"web_search"}],"input":"a"})",
       R"({"messages":[{"role":"user","content":"a"}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kResponses, c.body, c.result);
}

TEST(ResponsesRequest, CallsAndReasoningBelongToTheAnswer) {
  const FormCase kCases[] = {
      {R"({"input":[
           {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"R"},
                                                       {"type":"reasoning_text","text":"S"}]},
           {"type":"message","role":"assistant","phase":"p",
            "content":[{"type":"output_text","text":"T"}]},
           {"type":"message","role":"assistant","content":"U"},
           {"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\": 1}","id":"i"},
           {"type":"function_call","call_id":"2","name":"g","arguments":""},
           {"type":"function_call_output","call_id":"1","output":"O","status":"completed"},
           {"type":"function_call_output","call_id":"2",
            "output":[{"type":"input_text","text":"P"},{"type":"input_text","text":"Q"}]}]})",
       R"({"messages":[{"role":"assistant",
           "content":[{"type":"text","text":"T"},{"type":"text","text":"U"}],
           "reasoning_content":"R","tool_calls":[
           {"function":{"arguments":"{\"a\": 1}","name":"f"},"id":"1","type":"function"},
           {"function":{"arguments":"","name":"g"},"id":"2","type":"function"}]},
           {"content":"O","role":"tool","tool_call_id":"1"},
           {"content":[{"type":"text","text":"P"},{"type":"text","text":"Q"}],
            "role":"tool","tool_call_id":"2"}]})"},
      {R"({"input":[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
           {"type":"message","role":"assistant","content":"T"},
           {"type":"reasoning","summary":[],"content":[{"text":"R"}]}]})",
       R"({"messages":[{"role":"assistant","tool_calls":[
           {"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}],
           "content":[{"type":"text","text":"T"}],"reasoning_content":"R"}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kResponses, c.body, c.result);
}

TEST(ResponsesRequest, WhatElseATemplateMayLookAtGoesAlong) {
  const FormCase kCases[] = {
      {R"({"input":[{"role":"user","content":"a","name":"n"}],"chat_template_kwargs":{"b":1}})",
       R"({"chat_template_kwargs":{"b":1},
           "messages":[{"role":"user","content":[{"type":"text","text":"a"}],"name":"n"}]})"},
      {R"({"input":"a","reasoning":{"effort":"low","summary":"auto"}})",
       R"({"messages":[{"role":"user","content":"a"}],"reasoning_effort":"low"})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kResponses, c.body, c.result);
}

TEST(ResponsesRequest, OtherItemsAreForTheServerAlone) {
  const FormCase kCases[] = {
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "images"},
      {R"({"input":[{"role":"user","content":[{"type":"output_text","text":"a"}]}]})", "template"},
      {R"({"input":[{"type":"function_call","name":"f","arguments":{},"call_id":"1"}]})",
       "template"},
      {R"({"input":[{"type":"function_call","name":"f","arguments":"{}"}]})", "template"},
      {R"({"input":[{"type":"function_call_output","call_id":"1"}]})", "template"},
      {R"({"input":[{"type":"function_call_output","call_id":"1",
           "output":[{"type":"input_image"}]}]})",
       "images"},
      {R"({"input":[{"type":"function_call_output","output":"a"}]})", "template"},
      {R"({"input":[{"type":"custom_tool_call","call_id":"1","name":"f","input":"a"}]})",
       "template"},
      {R"({"input":[{"type":"reasoning","summary":[]}]})", "template"},
      {R"({"input":[{"type":"reasoning","summary":[],"content":[]}]})", "template"},
      {R"({"input":[{"type":"reasoning","content":[{"text":"a"}]}]})", "template"},
      {R"({"input":[{"type":"message","role":"assistant",
           "content":[{"type":"refusal","refusal":"a"}]}]})",
       "template"},
      {R"({"input":[{"role":"assistant","content":"a"}]})", "template"},
      {R"({"input":[{"role":"tool","content":"a"}]})", "template"},
      {R"({"input":[{"role":"user","content":7}]})", "template"},
      {R"({"input":[{"role":"user"}]})", "template"},
      {R"({"input":["a"]})", "template"},
      {R"({"input":7})", "template"},
      {R"({"input":"a","instructions":7})", "template"},
      {R"({"input":"a","tools":[7]})", "template"},
      {R"({"input":"a","tools":{}})", "template"},
      {R"({"input":"a","previous_response_id":"r"})", "template"},
      {R"({"input":[]})", "no_prompt"},
      {"{}", "no_prompt"},
      {R"({"input":"a","n":2})", "several_prompts"},
      {R"({"input":"a","cache_prompt":false})", "cache_prompt"},
  };
  for (const FormCase& c : kCases) expect_uncached(Route::kResponses, c.body, c.result);
}

}  // namespace
}  // namespace kvkeep::daemon
