#include "daemon/requests/completion_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<uint32_t>;

CompletionRequest completion(const std::string& body, bool cache_prompt = true) {
  return read_completion_request(Route::kCompletion, body, cache_prompt);
}
CompletionRequest chat(const std::string& body) {
  return read_completion_request(Route::kChat, body, true);
}

int forms(const CompletionRequest& request) {
  return request.tokens.has_value() + request.text.has_value() + request.template_body.has_value();
}

TEST(RouteOf, CompletionsAreKnownByTheirPaths) {
  const struct {
    const char* path;
    Route route;
  } kCases[] = {{"/completion", Route::kCompletion},
                {"/completions", Route::kCompletion},
                {"/v1/completions", Route::kCompletion},
                {"/chat/completions", Route::kChat},
                {"/v1/chat/completions", Route::kChat},
                {"/v1/messages", Route::kMessages},
                {"/responses", Route::kResponses},
                {"/v1/responses", Route::kResponses},
                {"/infill", Route::kInfill},
                {"/v1/completion", Route::kNone},
                {"/v1/messages/count_tokens", Route::kNone},
                {"/v1/chat/completions/input_tokens", Route::kNone},
                {"/completion/", Route::kNone},
                {"/embeddings", Route::kNone},
                {"", Route::kNone}};
  for (const auto& c : kCases) {
    EXPECT_EQ(route_of("POST", c.path), c.route) << c.path;
    EXPECT_EQ(route_of("GET", c.path), Route::kNone) << c.path;
    EXPECT_EQ(route_of("OPTIONS", c.path), Route::kNone) << c.path;
  }
}

TEST(CompletionRequest, APromptIsTextOrTokens) {
  EXPECT_EQ(completion(R"({"prompt":"Hi"})").text, "Hi");
  EXPECT_EQ(completion(R"({"prompt":["Hi"]})").text, "Hi");
  EXPECT_EQ(completion(R"({"prompt":"a\u0000b"})").text, std::string("a\0b", 3));
  EXPECT_EQ(completion(R"({"prompt":[1,0,2147483647]})").tokens, (Tokens{1, 0, 2147483647}));
  EXPECT_EQ(completion(R"({"prompt":[[1,2]]})").tokens, (Tokens{1, 2}));
  EXPECT_EQ(completion(R"({"prompt":"a","prompt":"b"})").text, "b");
  for (const char* body : {R"({"prompt":"Hi"})", R"({"prompt":[[1,2]]})"}) {
    const CompletionRequest request = completion(body);
    EXPECT_FALSE(request.uncached);
    EXPECT_EQ(forms(request), 1);
    EXPECT_EQ(request.route, Route::kCompletion);
    EXPECT_TRUE(request.honours_id_slot);
  }
}

TEST(CompletionRequest, WhatIsNotForACacheHasAReason) {
  const struct {
    const char *body, *reason;
  } kCases[] = {
      {"", "not_json"},
      {"[]", "not_json"},
      {"7", "not_json"},
      {"{", "not_json"},
      {"{} {}", "not_json"},
      {"{\"prompt\":\"\xff\"}", "not_json"},
      {"{}", "no_prompt"},
      {R"({"prompt":null})", "no_prompt"},
      {R"({"prompt":""})", "no_prompt"},
      {R"({"prompt":[]})", "no_prompt"},
      {R"({"prompt":[[]]})", "no_prompt"},
      {R"({"prompt":[""]})", "no_prompt"},
      {R"({"prompt":["a","b"]})", "several_prompts"},
      {R"({"prompt":[[1],[2]]})", "several_prompts"},
      {R"({"prompt":[{"prompt_string":"a"},"b"]})", "several_prompts"},
      {R"({"prompt":"a","n":2})", "several_prompts"},
      {R"({"prompt":"a","n_cmpl":2})", "several_prompts"},
      {R"({"prompt":["a",1]})", "mixed_prompt"},
      {R"({"prompt":[1,"a"]})", "mixed_prompt"},
      {R"({"prompt":[["a",1]]})", "mixed_prompt"},
      {R"({"prompt":[1,-2]})", "mixed_prompt"},
      {R"({"prompt":[1,2.5]})", "mixed_prompt"},
      {R"({"prompt":[2147483648]})", "mixed_prompt"},
      {R"({"prompt":[1,null]})", "mixed_prompt"},
      {R"({"prompt":7})", "mixed_prompt"},
      {R"({"prompt":true})", "mixed_prompt"},
      {R"({"prompt":[null]})", "mixed_prompt"},
      {R"({"prompt":{"prompt_string":"a","multimodal_data":[]}})", "images"},
      {R"({"prompt":[{"prompt_string":"a"}]})", "images"},
      {R"({"prompt":"a","multimodal_data":["x"]})", "images"},
      {R"({"prompt":"a","image_data":[{}]})", "images"},
      {R"({"prompt":"a","lora":[]})", "lora"},
      {R"({"prompt":"a","lora":[{"id":0,"scale":1}]})", "lora"},
      {R"({"prompt":"a","cache_prompt":false})", "cache_prompt"},
      {R"({"prompt":"a","n_cache_reuse":1})", "cache_reuse"},
      {R"({"prompt":"a","cache_salt":7})", "cache_salt"},
  };
  for (const auto& c : kCases) {
    const CompletionRequest request = completion(c.body);
    EXPECT_EQ(request.uncached, c.reason) << c.body;
    EXPECT_EQ(forms(request), 0) << c.body;
  }
}

TEST(CompletionRequest, WhatDoesNotChangeThePromptsStateIsFine) {
  for (const char* field :
       {R"("n":1)", R"("n_cache_reuse":0)", R"("lora":null)", R"("image_data":[])",
        R"("logprobs":5)", R"("cache_prompt":true)", R"("cache_prompt":null)", R"("n":null)",
        R"("grammar":"root ::= \"a\"")", R"("n_predict":0)", R"("cache_salt":null)"}) {
    EXPECT_FALSE(completion(std::string(R"({"prompt":"a",)") + field + "}").uncached) << field;
  }
}

TEST(CompletionRequest, TheServersDefaultForTheCacheHoldsUnlessTheRequestSays) {
  EXPECT_EQ(completion(R"({"prompt":"a"})", false).uncached, "cache_prompt");
  EXPECT_FALSE(completion(R"({"prompt":"a","cache_prompt":true})", false).uncached);
}

TEST(CompletionRequest, SaltSlotAndStreamAreRead) {
  const CompletionRequest request =
      completion(R"({"prompt":"a","cache_salt":"team","id_slot":3,"stream":true})");
  EXPECT_EQ(request.salt, "team");
  EXPECT_EQ(request.id_slot, 3);
  EXPECT_TRUE(request.stream);
  EXPECT_FALSE(completion(R"({"prompt":"a","stream":"yes"})").stream);
  EXPECT_EQ(completion(R"({"prompt":"a","id_slot":2.0})").id_slot, 2);
  for (const char* slot : {"-1", "null", "\"1\"", "1e99", "-0.5"}) {
    EXPECT_FALSE(completion(std::string(R"({"prompt":"a","id_slot":)") + slot + "}").id_slot);
  }
  // They are needed of requests that bypass the cache, too.
  EXPECT_EQ(completion(R"({"prompt":["a","b"],"id_slot":1})").id_slot, 1);
}

TEST(CompletionRequest, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return R"({"prompt":"a","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_FALSE(completion(nested(255)).uncached);
  EXPECT_EQ(completion(nested(256)).uncached, "not_json");
  EXPECT_EQ(completion(nested(2'000'000)).uncached, "not_json");
  EXPECT_EQ(completion(std::string(2'000'000, '[')).uncached, "not_json");
  // Brackets in texts are none.
  EXPECT_EQ(completion(R"({"prompt":"\")" + std::string(5000, '[') + "\"}").text->size(), 5001u);
}

TEST(CompletionRequest, ALargeBodyIsRead) {
  const std::string text(8'000'000, 'x');
  EXPECT_EQ(completion(R"({"prompt":")" + text + "\"}").text, text);
  std::string tokens = "[1";
  for (int i = 0; i < 200'000; ++i) tokens += ",70000";
  EXPECT_EQ(completion(R"({"prompt":)" + tokens + "]}").tokens->size(), 200'001u);
}

TEST(ChatRequest, ItsTemplateBodyIsTheBodyUnstreamed) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"Hi"}], "stream":true,"tools":[{"x":1.50}]} )";
  const CompletionRequest request = chat(body);
  ASSERT_TRUE(request.template_body) << *request.uncached;
  EXPECT_EQ(*request.template_body, body.substr(0, body.size() - 2) + ",\"stream\":false} ");
  EXPECT_EQ(Json::parse(*request.template_body)["stream"], false);
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(forms(request), 1);
}

TEST(ChatRequest, ContentOfTextsIsForACache) {
  for (const char* content :
       {R"("Hi")", "null", R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])", "[]"}) {
    const std::string message = std::string(R"({"role":"user","content":)") + content + "}";
    EXPECT_FALSE(chat(R"({"messages":[)" + message + "]}").uncached) << content;
  }
  EXPECT_FALSE(chat(R"({"messages":[{"role":"assistant","tool_calls":[]}]})").uncached);
}

TEST(ChatRequest, OtherContentIsNot) {
  const struct {
    const char *messages, *reason;
  } kCases[] = {
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}])",
       "images"},
      {R"([{"role":"user","content":[{"type":"input_audio"}]}])", "images"},
      {R"([{"role":"user","content":[{"type":"video_url"}]}])", "images"},
      {R"([{"role":"user","content":[{"text":"a"}]}])", "images"},
      {R"([{"role":"user","content":["a"]}])", "template"},
      {R"([{"role":"user","content":7}])", "template"},
      {R"(["a"])", "template"},
      {"[]", "no_prompt"},
      {"{}", "no_prompt"},
      {"null", "no_prompt"},
  };
  for (const auto& c : kCases) {
    const CompletionRequest request = chat(std::string(R"({"messages":)") + c.messages + "}");
    EXPECT_EQ(request.uncached, c.reason) << c.messages;
    EXPECT_EQ(forms(request), 0) << c.messages;
  }
  EXPECT_EQ(chat(R"({"messages":[{"role":"user","content":"a"}],"n":3})").uncached,
            "several_prompts");
}

TEST(WithSlot, TheSlotIsTheLastMemberOfTheSameBytes) {
  EXPECT_EQ(with_slot(R"({"prompt":"a"})", 2), R"({"prompt":"a","id_slot":2})");
  EXPECT_EQ(with_slot("{}", 0), R"({"id_slot":0})");
  EXPECT_EQ(with_slot(" { \n} \n", 0), " { \n\"id_slot\":0} \n");
  EXPECT_EQ(with_slot("{\"a\":\"{\" }\r\n", 1), "{\"a\":\"{\" ,\"id_slot\":1}\r\n");
  EXPECT_EQ(with_slot(R"({"a":{}})", 1), R"({"a":{},"id_slot":1})");
  EXPECT_EQ(with_slot("no object", 1), "no object");
  const Json twice = Json::parse(with_slot(R"({"id_slot":7,"prompt":"}"})", 1));
  EXPECT_EQ(twice["id_slot"], 1);
  EXPECT_EQ(twice["prompt"], "}");
}

}  // namespace
}  // namespace kvkeep::daemon
