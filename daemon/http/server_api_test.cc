// kvkeep's own calls, and servers that answer them with anything.

#include "daemon/http/server_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/completion.h"
#include "daemon/http/api_key.h"
#include "daemon/testing/live_door.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Api : public ::testing::Test {
 protected:
  Api() : live_(dir_.path()) {}
  FakeServer& server() { return live_.server(); }
  ServerApi& api() { return live_.door().api; }
  template <class T>
  T run(Async<T> work) {
    return run_to_end(live_.io(), std::move(work));
  }
  void answer(const std::string& path, const std::string& body, unsigned status = 200) {
    server().scripts[path].pieces = {"HTTP/1.1 " + std::to_string(status) +
                                     " X\r\nContent-Length: " + std::to_string(body.size()) +
                                     "\r\n\r\n" + body};
  }

  testing::TempDir dir_;
  LiveDoor live_;
};

TEST_F(Api, AsksWithTheKeyAndThePrefix) {
  ServerAddress address = server().address();
  address.prefix = "/p";
  address.api_key = "secret";
  answer("/p/health", "{}");
  ServerApi mine(live_.io().get_executor(), address);
  EXPECT_TRUE(run(mine.is_healthy()));
  EXPECT_EQ(server().requests.at(0).headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(server().requests.at(0).headers.at("connection"), "close");
}

TEST_F(Api, TokensAreNumbersThatCanBeTokens) {
  EXPECT_THAT(*run(api().tokenize("ab")), ElementsAre('a', 'b'));
  for (const char* body :
       {"{}", "[]", "1", R"({"tokens":1})", R"({"tokens":[-1]})", R"({"tokens":[1.5]})",
        R"({"tokens":[4294967296]})", R"({"tokens":["a"]})", R"({"tokens":[{"id":1}]})"}) {
    answer("/tokenize", body);
    EXPECT_EQ(run(api().tokenize("ab")).status().code(), Code::kDataLoss) << body;
  }
  answer("/tokenize", R"({"tokens":[]})");
  EXPECT_TRUE(run(api().tokenize("ab"))->empty());
}

TEST_F(Api, TextsThatAreNotUnicodeAreAskedAllTheSame) {
  answer("/tokenize", R"({"tokens":[1]})");
  EXPECT_TRUE(run(api().tokenize("a\xff")).ok());
}

TEST_F(Api, APromptIsAText) {
  for (const char* body : {"{}", "[]", "null", R"({"prompt":1})", R"({"prompt":["a"]})"}) {
    answer("/apply-template", body);
    EXPECT_EQ(run(api().apply_template("{}")).status().code(), Code::kDataLoss) << body;
  }
}

TEST_F(Api, WhatIsNoJsonIsNamed) {
  answer("/tokenize", "<html>");
  const auto tokens = run(api().tokenize("ab"));
  EXPECT_EQ(tokens.status().code(), Code::kDataLoss);
  EXPECT_THAT(tokens.status().message(), HasSubstr("/tokenize"));
}

TEST_F(Api, ARefusalHasTheServersWords) {
  answer("/slots/0", R"({"error":{"message":"Unable to save"}})", 400);
  const auto saved = run(api().save_slot(0, "f"));
  EXPECT_EQ(saved.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(saved.status().message(), HasSubstr("HTTP 400: Unable to save"));
  for (const char* body : {"", "[]", R"({"error":"text"})", R"({"error":{"message":7}})"}) {
    answer("/slots/0", body, 500);
    EXPECT_THAT(run(api().save_slot(0, "f")).status().message(), HasSubstr("no reason given"));
  }
}

TEST_F(Api, PropsOfOtherTypesAreTakenForNone) {
  for (const char* body :
       {"{}", "[]", "3", R"({"total_slots":"2"})", R"({"total_slots":-1})",
        R"({"total_slots":1e300})", R"({"total_slots":4294967297})",
        R"({"total_slots":null,"build_info":7,"model_path":[],"default_generation_settings":1})"}) {
    answer("/props", body);
    const auto props = run(api().props());
    ASSERT_TRUE(props.ok()) << body;
    EXPECT_EQ(props->slots, 0u) << body;
    EXPECT_EQ(props->slot_tokens, 0u) << body;
  }
}

TEST_F(Api, ServersWithoutAdaptersHaveNone) {
  answer("/lora-adapters", "{}", 404);
  EXPECT_EQ(run(api().adapters()), "[]");
  answer("/lora-adapters", R"({"a":1})");
  EXPECT_EQ(run(api().adapters()), "[]");
}

TEST_F(Api, AServerThatGoesAwayIsUnavailable) {
  server().scripts["/props"].pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"};
  EXPECT_EQ(run(api().props()).status().code(), Code::kUnavailable);
  server().scripts["/props"].pieces = {};
  EXPECT_EQ(run(api().props()).status().code(), Code::kUnavailable);
  ServerApi nobody(live_.io().get_executor(), ServerAddress{"127.0.0.1", 1, "", ""});
  const auto props = run(nobody.props());
  EXPECT_EQ(props.status().code(), Code::kUnavailable);
  EXPECT_THAT(props.status().message(), HasSubstr("127.0.0.1:1"));
}

// Whatever a server says of itself, requests are answered and it is said why they are not cached.
TEST_F(Api, AServerThatCannotBeKnownIsServedUncached) {
  answer("/props", R"({"total_slots":0})");
  EXPECT_FALSE(live_.bring_up());
  EXPECT_EQ(live_.door().uncached.reason, "old_server");
  EXPECT_EQ(live_.complete("hello").status, 200u);
}

TEST_F(Api, AServerThatSavesNoSlotsIsServedUncached) {
  answer("/slots/0", R"({"error":{"message":"This server does not support slots"}})", 501);
  EXPECT_FALSE(live_.bring_up());
  EXPECT_EQ(live_.door().uncached.reason, "old_server");
  EXPECT_EQ(live_.complete("hello").headers.at("x-kvkeep-reason"), "old_server");
}

TEST_F(Api, AServerThatSavesElsewhereIsServedUncached) {
  answer("/slots/0", R"({"n_saved":1})");
  EXPECT_FALSE(live_.bring_up());
  EXPECT_EQ(live_.door().uncached.reason, "slot_dir");
}

TEST_F(Api, AModelThatCannotBeReadIsServedUncached) {
  server().model_path = (dir_.path() / "none").string();
  EXPECT_FALSE(live_.bring_up());
  EXPECT_EQ(live_.door().uncached.reason, "model_file");
}

TEST_F(Api, AdaptersOfOtherTypesDoNotEndTheStart) {
  answer("/lora-adapters", R"([1,{"scale":"x","path":7},{"scale":0,"path":"a"}])");
  EXPECT_FALSE(live_.bring_up());
  EXPECT_EQ(live_.door().uncached.reason, "model_file");
}

TEST_F(Api, AdaptersAreOfTheNamespace) {
  const std::string adapter = (dir_.path() / "model.gguf").string();
  answer("/lora-adapters", R"([{"scale":0.5,"path":")" + adapter + "\"}]");
  ASSERT_TRUE(live_.bring_up());
  EXPECT_THAT(live_.door().store->identity().fields.at("adapter.0"), HasSubstr(" x 0.5"));
}

RequestHead head_with(http::field name, const std::string& value) {
  RequestHead head;
  head.set(name, value);
  return head;
}

TEST(ApiKey, IsNeededOnlyWhereThereAreSome) {
  EXPECT_TRUE(has_api_key(RequestHead(), {}));
  EXPECT_FALSE(has_api_key(RequestHead(), {"a"}));
}

TEST(ApiKey, MayComeInThreeForms) {
  const std::vector<std::string> keys{"other", "secret"};
  const auto given = [&](const std::string& value) {
    return has_api_key(head_with(http::field::authorization, value), keys);
  };
  EXPECT_TRUE(given("Bearer secret"));
  EXPECT_TRUE(given("bearer other"));
  EXPECT_TRUE(given("Basic dXNlcjpzZWNyZXQ="));  // user:secret
  RequestHead head;
  head.set("X-Api-Key", "secret");
  EXPECT_TRUE(has_api_key(head, keys));
}

TEST(ApiKey, IsNoOther) {
  const std::vector<std::string> keys{"secret"};
  for (const char* value :
       {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret",
        "Bearersecret", "Basic c2VjcmV0", "Basic ", "Basic !!!!", "Digest secret"}) {
    EXPECT_FALSE(has_api_key(head_with(http::field::authorization, value), keys)) << value;
  }
}

}  // namespace
}  // namespace kvkeep::daemon
