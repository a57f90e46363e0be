// Requests to /v1/messages and /v1/responses, which have other forms than chat requests.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/completion_request.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  const char *body, *result;
};

void expect_chat(Route route, const char* body, const char* chat) {
  const CompletionRequest request = read_completion_request(route, body, true);
  ASSERT_TRUE(request.template_body) << body << ": " << request.uncached.value_or("");
  EXPECT_FALSE(request.uncached);
  EXPECT_EQ(nlohmann::json::parse(*request.template_body), nlohmann::json::parse(chat)) << body;
}

void expect_uncached(Route route, const char* body, const char* reason) {
  const CompletionRequest request = read_completion_request(route, body, true);
  EXPECT_EQ(request.uncached, reason) << body;
  EXPECT_FALSE(request.template_body) << body;
}

TEST(MessagesRequest, IsAChatOfItsTexts) {
  const Case kCases[] = {
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
  for (const Case& c : kCases) expect_chat(Route::kMessages, c.body, c.result);
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
  const Case kCases[] = {
      {R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})", "images"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result"}]}]})", "template"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"thinking"}]}]})", "template"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "template"},
      {R"({"messages":[{"role":"user","content":["a"]}]})", "template"},
      {R"({"messages":[{"role":"user","content":7}]})", "template"},
      {R"({"messages":[{"role":"user"}]})", "template"},
      {R"({"messages":[{"content":"a"}]})", "template"},
      {R"({"messages":[7]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"system":7})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"system":[{"type":"x"}]})", "template"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[{}]})", "template"},
      {R"({"messages":[]})", "no_prompt"},
      {R"({"prompt":"a"})", "no_prompt"},
  };
  for (const Case& c : kCases) expect_uncached(Route::kMessages, c.body, c.result);
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

TEST(ResponsesRequest, IsAChatOfItsTexts) {
  const Case kCases[] = {
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
           {"role":"assistant","content":[{"type":"text","text":"A"}]},
           {"role":"developer","content":[{"type":"text","text":"B"}]}]})"},
  };
  for (const Case& c : kCases) expect_chat(Route::kResponses, c.body, c.result);
}

TEST(ResponsesRequest, OtherItemsAreForTheServerAlone) {
  const Case kCases[] = {
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "images"},
      {R"({"input":[{"role":"user","content":[{"type":"output_text","text":"a"}]}]})", "template"},
      {R"({"input":[{"type":"function_call","name":"f","arguments":"","call_id":"1"}]})",
       "template"},
      {R"({"input":[{"type":"reasoning","summary":[]}]})", "template"},
      {R"({"input":[{"role":"assistant","content":"a"}]})", "template"},
      {R"({"input":[{"role":"assistant","type":"message","content":"a"},
           {"role":"assistant","type":"message","content":"b"}]})",
       "template"},
      {R"({"input":[{"role":"user","content":"a","name":"n"}]})", "template"},
      {R"({"input":[{"role":"tool","content":"a"}]})", "template"},
      {R"({"input":[{"role":"user","content":7}]})", "template"},
      {R"({"input":[{"role":"user"}]})", "template"},
      {R"({"input":["a"]})", "template"},
      {R"({"input":7})", "template"},
      {R"({"input":"a","instructions":7})", "template"},
      {R"({"input":"a","tools":[{}]})", "template"},
      {R"({"input":"a","previous_response_id":"r"})", "template"},
      {R"({"input":"a","reasoning":{"effort":"low"}})", "template"},
      {R"({"input":[]})", "no_prompt"},
      {"{}", "no_prompt"},
      {R"({"input":"a","n":2})", "several_prompts"},
      {R"({"input":"a","cache_prompt":false})", "cache_prompt"},
  };
  for (const Case& c : kCases) expect_uncached(Route::kResponses, c.body, c.result);
}

}  // namespace
}  // namespace kvkeep::daemon
