// Requests to /v1/messages, which have another form than chat requests. The chat forms are those
// that llama-server makes: the tokens of its slots were compared.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/requests/completion_request.h"
#include "daemon/testing/form_expectation.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

TEST(MessagesRequest, IsAChatOfItsTexts) {
  const FormCase kCases[] = {
      {R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":5,"stream":true})",
       R"({"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"system":"S","messages":[{"role":"user","content":"Hi"}],"tools":[]})",
       R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hi"}]})"},
      {R"({"system":[{"type":"text","text":"A"},{"type":"text","text":"B","cache_control":{}}],
           "messages":[{"role":"user",
                        "content":[{"type":"text","text":"Hi","cache_control":{}}]}]})",
       R"({"messages":[{"role":"system","content":"AB"},
           {"role":"user","content":[{"type":"text","text":"Hi"}]}]})"},
      {R"({"system":null,"messages":[{"role":"assistant","content":[]},
           {"role":"user","content":"Hi"}]})",
       R"({"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"a":1},
           "thinking":{"type":"enabled","budget_tokens":9}})",
       R"({"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"a":1},
           "thinking_budget_tokens":9})"},
      {R"({"messages":[{"role":"user","content":"Hi"}],"thinking":{"type":"disabled"}})",
       R"({"messages":[{"role":"user","content":"Hi"}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kMessages, c.body, c.result);
}

TEST(MessagesRequest, ToolsAreFunctions) {
  const std::string question = R"({"messages":[{"role":"user","content":"a"}],"tools":)";
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}],"tools":)";
  const FormCase kCases[] = {
      {R"([{"cache_control":{},"input_schema":{"type":"object","b":1.0,"a":{}},"strict":true,
            "description":"D","name":"f"}]})",
       R"([{"type":"function","function":{"name":"f","description":"D",
            "parameters":{"type":"object","b":1.0,"a":{}}}}]})"},
      {R"([{"type":"bash_20250124","name":"bash"}]})",
       R"([{"type":"function","function":{"name":"bash","description":"","parameters":{}}}]})"},
      {R"([{"name":"f","description":null,"input_schema":{}}],"tool_choice":{"type":"auto"}})",
       R"([{"type":"function","function":{"name":"f","description":"","parameters":{}}}],
           "tool_choice":"auto"})"},
      {R"([{"name":"f"}],"tool_choice":{"type":"any"}})",
       R"([{"type":"function","function":{"name":"f","description":"","parameters":{}}}],
           "tool_choice":"required"})"},
      {R"([{"name":"f"}],"tool_choice":{"type":"tool","name":"f"}})",
       R"([{"type":"function","function":{"name":"f","description":"","parameters":{}}}],
           "tool_choice":"required"})"},
      {R"([{"name":"f"}],"tool_choice":{"type":"none"}})",
       R"([{"type":"function","function":{"name":"f","description":"","parameters":{}}}]})"},
      {R"([{"name":"f"}],"tool_choice":"none"})",
       R"([{"type":"function","function":{"name":"f","description":"","parameters":{}}}]})"},
  };
  for (const FormCase& c : kCases) {
    expect_chat(Route::kMessages, (question + c.body).c_str(), (chat + c.result).c_str());
  }
}

TEST(MessagesRequest, CallsBelongToTheAnswerAndResultsAreMessages) {
  const FormCase kCases[] = {
      {R"({"messages":[{"role":"assistant","content":[{"type":"text","text":"T"},
           {"type":"tool_use","id":"1","name":"f","input":{"z":1.0,"a":["\u00e9",null]}},
           {"type":"tool_use","id":"2","name":"g","input":{},"cache_control":{}}]}]})",
       R"({"messages":[{"role":"assistant","content":[{"type":"text","text":"T"}],"tool_calls":[
           {"id":"1","type":"function",
            "function":{"name":"f","arguments":"{\"z\":1.0,\"a\":[\"é\",null]}"}},
           {"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]}]})"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]})",
       R"({"messages":[{"role":"assistant","content":"","tool_calls":[
           {"id":"","type":"function","function":{"name":"f","arguments":"{}"}}]}]})"},
      {R"({"messages":[{"role":"user","content":[
           {"type":"tool_result","tool_use_id":"1","content":"R","is_error":true},
           {"type":"tool_result","tool_use_id":"2",
            "content":[{"type":"text","text":"a"},{"type":"tool_reference"},
                       {"type":"text","text":"b","cache_control":{}}]},
           {"type":"text","text":"T"}]}]})",
       R"({"messages":[{"role":"user","content":[{"type":"text","text":"T"}]},
           {"role":"tool","tool_call_id":"1","content":"R"},
           {"role":"tool","tool_call_id":"2","content":"ab"}]})"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result"},
           {"type":"tool_result","tool_use_id":"2","content":[]}]}]})",
       R"({"messages":[{"role":"tool","tool_call_id":"","content":""},
           {"role":"tool","tool_call_id":"2","content":""}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kMessages, c.body, c.result);
}

TEST(MessagesRequest, ThinkingIsTheAnswersReasoning) {
  const FormCase kCases[] = {
      {R"({"messages":[{"role":"assistant","content":[
           {"type":"thinking","thinking":"A","signature":"s"},{"type":"redacted_thinking"},
           {"type":"thinking","thinking":"B"},{"type":"text","text":"T"},
           {"type":"tool_use","id":"1","name":"f","input":{}}]}]})",
       R"({"messages":[{"role":"assistant","content":[{"type":"text","text":"T"}],"tool_calls":[
           {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],
           "reasoning_content":"AB"}]})"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"A"}]}]})",
       R"({"messages":[{"role":"assistant","content":"","reasoning_content":"A"}]})"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]},
           {"role":"user","content":[{"type":"document","source":{}}]},
           {"role":"user","content":"Hi"}]})",
       R"({"messages":[{"role":"user","content":"Hi"}]})"},
  };
  for (const FormCase& c : kCases) expect_chat(Route::kMessages, c.body, c.result);
}

TEST(MessagesRequest, TheStampOfItsClientIsBlankedAsTheServerDoes) {
  expect_chat(
      Route::kMessages,
      R"({"system":"x-anthropic-billing-header: v=2; cch=a5145;You",
          "messages":[{"role":"user","content":"a"}]})",
      R"({"messages":[{"role":"system","content":"x-anthropic-billing-header: v=2; cch=fffff;You"},
          {"role":"user","content":"a"}]})");
  for (const char* system :
       {"x-anthropic-billing-header: none", "cch=a5145;", "x-anthropic-billing-header: cch=a51;",
        "x-anthropic-billing-header:cch="}) {
    const Json body{{"system", system}, {"messages", {{{"role", "user"}, {"content", "a"}}}}};
    const CompletionRequest request = read_completion_request(Route::kMessages, body.dump(), true);
    EXPECT_EQ(Json::parse(*request.template_body)["messages"][0]["content"], system);
  }
}

TEST(MessagesRequest, OtherPartsAreForTheServerAlone) {
  const FormCase kCases[] = {
      {R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})", "images"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result",
           "content":[{"type":"text","text":"a"},{"type":"image"}]}]}]})",
       "images"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","content":7}]}]})",
       "template"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","content":["a"]}]}]})",
       "template"},
      {R"({"messages":[{"role":"user","content":[{"type":"mystery","text":"a"}]}]})", "template"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]})", "template"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "template"},
      {R"({"messages":[{"role":"user","content":["a"]}]})", "template"},
      {R"({"messages":[{"role":"user","content":7}]})", "template"},
      {R"({"messages":[{"role":"user"}]})", "template"},
      {R"({"messages":[{"content":"a"}]})", "template"},
      {R"({"messages":[7]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"system":7})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"system":[{"type":"x"}]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[{}]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[7]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":{}})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":null}]})",
       "template"},
      {R"({"messages":[]})", "no_prompt"},
      {R"({"prompt":"a"})", "no_prompt"},
  };
  for (const FormCase& c : kCases) expect_uncached(Route::kMessages, c.body, c.result);
}

// The server hands only a few fields on, and id_slot is not among them.
TEST(MessagesRequest, FieldsThatTheServerDropsDoNotCount) {
  const std::string messages = R"({"messages":[{"role":"user","content":"a"}],)";
  const CompletionRequest request = read_completion_request(
      Route::kMessages,
      messages + R"("cache_prompt":false,"n":4,"lora":[],"id_slot":1,"cache_salt":"s"})", true);
  EXPECT_FALSE(request.uncached);
  EXPECT_FALSE(request.honours_id_slot);
  EXPECT_EQ(request.salt, "s");
  EXPECT_EQ(read_completion_request(Route::kMessages, messages + R"("cache_prompt":true})", false)
                .uncached,
            "cache_prompt");
}

}  // namespace
}  // namespace kvkeep::daemon
