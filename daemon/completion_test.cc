// Completions through kvkeep, from the client's bytes to the server's slots and the store.

#include "daemon/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "daemon/other_builds.h"
#include "daemon/testing/live_door.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

uint64_t cache_n(const Answer& answer) {
  return Json::parse(answer.body)["timings"]["cache_n"].get<uint64_t>();
}

class Completion : public ::testing::Test {
 protected:
  void SetUp() override { start(); }

  // Another run of kvkeep and of the server, with the same files.
  void start(uint32_t slots = 2, const std::string& build = "b1") {
    live_.reset();
    live_ = std::make_unique<LiveDoor>(dir_.path(), slots);
    server().build = build;
    ASSERT_TRUE(live_->bring_up()) << live_->door().uncached.text;
  }
  FakeServer& server() { return live_->server(); }
  Tally& tally() { return live_->door().tally; }
  size_t saves() const { return live_->door().tally.saves; }

  testing::TempDir dir_;
  std::unique_ptr<LiveDoor> live_;
};

TEST_F(Completion, TheFirstIsComputedAndStored) {
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "0");
  EXPECT_EQ(cache_n(answer), 0u);
  EXPECT_EQ(tally().saves, 1u);
  EXPECT_EQ(tally().blocks_stored, 6u);  // 103 tokens have a state.
}

TEST_F(Completion, AfterARestartTheNextIsRestored) {
  live_->complete(text_of("a", 100));
  start();
  const Answer answer = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "96");
  EXPECT_EQ(cache_n(answer), 96u);
  EXPECT_EQ(server().wrong_files, 0u);
  EXPECT_EQ(tally().completions_restored, 1u);
}

TEST_F(Completion, AnotherSlotIsGivenWhatTheFirstOneComputed) {
  live_->complete(text_of("a", 100), R"(,"id_slot":0)");
  const Answer answer = live_->complete(text_of("a", 100) + "?", R"(,"id_slot":1)");
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "96");
  EXPECT_EQ(cache_n(answer), 96u);
  EXPECT_EQ(Json::parse(answer.body)["id_slot"], 1);
  EXPECT_EQ(server().wrong_files, 0u);
}

TEST_F(Completion, GeneratedTokensAreFoundInTheNextTurn) {
  const std::string first = text_of("a", 90);
  const Answer answer = live_->complete(first, R"(,"n_predict":40)");
  const std::string said = Json::parse(answer.body)["content"];
  start();
  EXPECT_EQ(cache_n(live_->complete(first + said + " and then?")), 128u);  // Of 129 with a state.
}

TEST_F(Completion, WhatASlotStillHoldsIsNotRestored) {
  live_->complete(text_of("a", 100));
  const Answer answer = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "live");
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "100");
  EXPECT_EQ(tally().restores, 0u);
}

TEST_F(Completion, WhatIsThereAlreadyIsNotSavedAgain) {
  live_->complete(text_of("a", 100));
  live_->complete(text_of("a", 100));
  EXPECT_EQ(tally().saves, 1u);
  EXPECT_EQ(tally().saves_unneeded, 1u);
}

TEST_F(Completion, StreamedAnswersArriveAsTheServerSentThem) {
  const Answer answer = live_->complete(text_of("a", 100), R"(,"stream":true,"n_predict":3)");
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(answer.body, HasSubstr("data: {\"content\":\"y\"}\n\n"));
  EXPECT_EQ(tally().saves, 1u);
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?")), 96u);
}

TEST_F(Completion, TheServerGetsTheBodyWithTheSlotAppended) {
  start(1);
  live_->complete("hello", R"(, "temperature" : 0)");
  const auto seen = server().requests_to("/completion");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].body, R"({"prompt":"hello", "temperature" : 0,"id_slot":0})");
}

TEST_F(Completion, AChatIsFoundAgain) {
  const std::string system = text_of("You are ", 80);
  const auto chat = [&](const std::string& question) {
    return Json{
        {"messages",
         {{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", question}}}}}
        .dump();
  };
  live_->ask("/v1/chat/completions", chat("one?"));
  start();
  EXPECT_EQ(cache_n(live_->ask("/chat/completions?x=1", chat("two?"))), 80u);
}

TEST_F(Completion, ARefusedRestoreIsAnsweredAndEndsTheCaching) {
  live_->complete(text_of("a", 100));
  start();
  server().refuses_restores = true;
  const Answer answer = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "restore_failed");
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "0");
  EXPECT_EQ(cache_n(answer), 0u);
  EXPECT_EQ(tally().restore_failures, 1u);
  EXPECT_EQ(live_->door().uncached.reason, "restore_failed");
  const Answer next = live_->complete(text_of("b", 100));
  EXPECT_EQ(next.status, 200u);
  EXPECT_EQ(next.headers.at("x-kvkeep-reason"), "restore_failed");
}

TEST_F(Completion, ARestoreOfAnotherNumberOfTokensEndsTheCaching) {
  live_->complete(text_of("a", 100));
  start();
  for (const char* path : {"/slots/0", "/slots/1"}) {
    server().scripts[path].pieces = {
        "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"n_restored\":1}"};
  }
  const Answer answer = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "restore_failed");
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "0");
  EXPECT_THAT(live_->door().uncached.text, HasSubstr("another number of tokens"));
}

TEST_F(Completion, RestoresThatTheServerDoesNotUseEnd) {
  for (const char* name : {"a", "b", "c"}) live_->complete(text_of(name, 100));
  start();
  server().forgets_restores = true;
  const Answer first = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(first.headers.at("x-kvkeep-reason"), "restored");  // It was not known yet.
  EXPECT_EQ(cache_n(first), 0u);
  EXPECT_EQ(tally().restored_tokens, 0u);
  EXPECT_EQ(tally().reasons.at("restore_unused"), 1u);
  EXPECT_TRUE(live_->door().is_ready());
  live_->complete(text_of("b", 100) + "?");
  EXPECT_EQ(tally().restores_unused, 2u);
  const Answer third = live_->complete(text_of("c", 100) + "?");
  EXPECT_EQ(third.headers.at("x-kvkeep-reason"), "restore_unused");
  EXPECT_THAT(live_->door().uncached.text, HasSubstr("--swa-full"));
}

// The blocks on disk, largest files of the store, in order of their names.
std::vector<std::filesystem::path> block_files(const std::filesystem::path& store) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
    const bool own = entry.path().string().find("/.kvkeep/") != std::string::npos;
    if (entry.is_regular_file() && !own && entry.file_size() > 1000) files.push_back(entry.path());
  }
  return files;
}

void flip_byte(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-40, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 0x40);
  file.seekp(-40, std::ios::end);
  file.put(byte);
}

TEST_F(Completion, DamagedBlocksMeanFewerTokensAndNoWrongByte) {
  live_->complete(text_of("a", 160));
  start();
  const auto files = block_files(live_->store());
  ASSERT_EQ(files.size(), 10u);
  flip_byte(files[4]);
  const Answer answer = live_->complete(text_of("a", 160) + "?");
  EXPECT_EQ(answer.status, 200u);
  const uint64_t cached = cache_n(answer);
  EXPECT_LT(cached, 160u);
  EXPECT_EQ(cached % LiveDoor::kBlock, 0u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), std::to_string(cached));
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "damaged");
  EXPECT_EQ(server().wrong_files, 0u);
  // What was lost is stored again at once.
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 160) + "?")), 160u);
}

TEST_F(Completion, BlocksThatAreGoneMeanFewerTokens) {
  live_->complete(text_of("a", 160));
  start();
  for (const auto& file : block_files(live_->store())) std::filesystem::remove(file);
  const Answer answer = live_->complete(text_of("a", 160) + "?");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(cache_n(answer), 0u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-cached-tokens"), "0");
}

TEST_F(Completion, ASaveThatFindsNoRoomIsDropped) {
  const auto all = live_->door().directory->reserve(1 << 30);
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(tally().saves_dropped, 1u);
  EXPECT_EQ(tally().saves, 0u);
  EXPECT_FALSE(live_->door().gate->slots()[0].is_reserved);
}

TEST_F(Completion, ARestoreThatFindsNoRoomIsLeftOut) {
  live_->complete(text_of("a", 100));
  start();
  const auto all = live_->door().directory->reserve(1 << 30);
  const Answer answer = live_->complete(text_of("a", 100) + "?");
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "slot_dir_full");
  EXPECT_EQ(cache_n(answer), 0u);
}

TEST_F(Completion, StoreOffStoresNothingAndMayBeRestored) {
  live_->complete(text_of("a", 100), "", "x-kvkeep-store: off\r\n");
  EXPECT_EQ(tally().saves, 0u);
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100))), 0u);
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?", "", "x-kvkeep-store: off\r\n")), 96u);
}

TEST_F(Completion, SaltsKeepPromptsApart) {
  live_->complete(text_of("a", 100), R"(,"cache_salt":"x")");
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?", R"(,"id_slot":0)")), 0u);
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?", R"(,"cache_salt":"y","id_slot":1)")),
            0u);
  start();
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?", R"(,"cache_salt":"x")")), 96u);
}

TEST_F(Completion, MessagesOfAnotherTemplateArePassedThroughForAWhile) {
  start(1);
  int number = 0;
  const auto is_passed = [&](const std::string& path = "/v1/messages") {
    const Json message{{"role", "user"}, {"content", text_of(std::to_string(++number), 100)}};
    const Answer answer = live_->ask(path, Json{{"messages", {message}}}.dump());
    EXPECT_EQ(answer.status, 200u);
    return answer.headers.at("x-kvkeep-reason") == "template";
  };
  server().messages_have_more = true;
  EXPECT_FALSE(is_passed());
  EXPECT_EQ(tally().template_differs, 1u);
  EXPECT_TRUE(is_passed());
  EXPECT_FALSE(is_passed("/v1/chat/completions"));  // Others are as before.
  // Tried again, and once more wrong: two are passed.
  EXPECT_FALSE(is_passed());
  EXPECT_EQ(tally().template_differs, 2u);
  EXPECT_TRUE(is_passed());
  EXPECT_TRUE(is_passed());
  // As foreseen again: it ends.
  server().messages_have_more = false;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_passed());
  server().messages_have_more = true;
  EXPECT_FALSE(is_passed());
  EXPECT_TRUE(is_passed());
  EXPECT_FALSE(is_passed());
  EXPECT_EQ(tally().template_differs, 4u);
}

// It uses a slot, which nobody else may have meanwhile, and whose content is then not known.
TEST_F(Completion, InfillHasASlotOfItsOwn) {
  start(1);
  server().holds_completions = true;
  const auto infill = live_->connect(), other = live_->connect();
  infill->send(request_text("POST", "/infill", R"({"input_prefix":"a","prompt":"b"})"));
  ASSERT_TRUE(live_->until([&] { return live_->door().gate->slots()[0].is_reserved; }));
  other->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  ASSERT_TRUE(live_->until([&] { return live_->door().gate->waiting() == 1; }));
  server().holds_completions = false;
  server().resume();
  std::optional<Answer> answer;
  ASSERT_TRUE(live_->until([&] { return (answer = infill->take_answer()).has_value(); }));
  EXPECT_EQ(answer->headers.at("x-kvkeep-reason"), "infill");
  ASSERT_TRUE(live_->until([&] { return other->take_answer().has_value(); }));
  EXPECT_TRUE(live_->until_kept());
  EXPECT_EQ(server().requests_to("/infill")[0].body,
            R"({"input_prefix":"a","prompt":"b","id_slot":0})");
  EXPECT_EQ(server().overlaps, 0u);
}

// One that does not read keeps its slot only so long.
TEST_F(Completion, AClientThatReadsNothingIsTakenForGone) {
  start(1);
  live_->door().client_patience = std::chrono::milliseconds(1);
  server().scripts["/completion"].pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n",
                                            std::string(8 << 20, 'x')};
  const auto client = live_->connect();
  client->stop_reading();
  client->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  EXPECT_TRUE(live_->until([&] { return tally().client_left == 1; }));
  EXPECT_TRUE(live_->until_kept());
  EXPECT_FALSE(live_->door().gate->slots()[0].is_reserved);
}

TEST_F(Completion, AClientThatLeavesBeforeTheServerTakesItsRequestIsLetGo) {
  server().scripts["/completion"] = {{Script::kHold}, true};
  auto client = live_->connect();
  const std::string much = R"(,"x":")" + std::string(32 << 20, 'x') + '"';
  client->send(request_text("POST", "/completion", prompt_body(text_of("a", 100), much)));
  ASSERT_TRUE(live_->until([&] { return server().holding() == 1; }));
  run_ready(live_->io());
  client.reset();
  EXPECT_TRUE(live_->until([&] { return tally().client_left == 1; }));
  EXPECT_EQ(tally().server_failed, 0u);
  server().resume();
}

// Where a request cannot name its slot, the one that was reserved for it may stay empty.
TEST_F(Completion, ASlotThatStayedEmptyIsNoOtherLayout) {
  const std::string body =
      R"({"messages":[{"role":"user","content":")" + text_of("a", 100) + "\"}]}";
  EXPECT_EQ(live_->ask("/v1/messages", body).status, 200u);
  EXPECT_EQ(tally().saves, 1u);
  EXPECT_EQ(tally().blocks_stored, 0u);
  EXPECT_TRUE(live_->door().is_ready()) << live_->door().uncached.text;
}

TEST_F(Completion, SlotFilesThatChangeTheirLayoutEndTheCaching) {
  live_->complete(text_of("a", 100));
  const uint64_t stored = tally().blocks_stored;
  server().layout.layers.pop_back();
  EXPECT_EQ(live_->complete(text_of("b", 100)).status, 200u);
  EXPECT_EQ(tally().blocks_stored, stored);
  EXPECT_EQ(live_->door().uncached.reason, "layout");
  EXPECT_EQ(live_->complete(text_of("b", 100)).headers.at("x-kvkeep-reason"), "layout");
}

TEST_F(Completion, AFullSlotThatMayHaveBeenShiftedIsNotStored) {
  live_->door().context_shift = true;
  live_->door().props.slot_tokens = 110;
  live_->complete(text_of("a", 100), R"(,"n_predict":10)");
  EXPECT_EQ(tally().saves, 0u);
  live_->complete(text_of("b", 90), R"(,"n_predict":10)");
  EXPECT_EQ(tally().saves, 1u);
}

TEST_F(Completion, BlocksOfAnotherBuildLeaveFirst) {
  start(2, "b2");
  live_->complete(text_of("b", 160));
  start(2, "b1");
  live_->complete(text_of("a", 160));  // Used later than those of b2.
  start(2, "b2");
  PromptStore& store = *live_->door().store;
  const auto others = [&] {
    return blocks_of_other_builds(live_->store(), store.identity().fields);
  };
  ASSERT_EQ(others().size(), 1u);
  EXPECT_EQ(others()[0].build, "b1");
  EXPECT_EQ(others()[0].blocks.size(), 10u);
  EXPECT_GT(others()[0].bytes, 0u);
  // Room for some of the ten blocks of the next, beside what is always kept free.
  store.cache().set_configured_max_size(store.cache().tracked_size() + 100'000);
  live_->complete(text_of("c", 160));
  EXPECT_TRUE(store.cache().flush().ok());
  ASSERT_EQ(others().size(), 1u);
  EXPECT_LT(others()[0].blocks.size(), 8u);
  EXPECT_EQ(cache_n(live_->complete(text_of("b", 160) + "?")), 160u);
}

TEST_F(Completion, AServerThatWasReplacedIsPassedThrough) {
  live_->door().may_change = true;
  live_->complete(text_of("a", 100));
  EXPECT_EQ(tally().saves, 1u);
  server().build = "b2";
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "server_changed");
  EXPECT_EQ(tally().saves, 1u);
}

TEST_F(Completion, AServerReplacedDuringARequestIsNotSaved) {
  live_->door().may_change = true;
  server().holds_completions = true;
  const auto client = live_->connect();
  client->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  ASSERT_TRUE(live_->until([&] { return server().holding() == 1; }));
  server().build = "b2";
  server().resume();
  ASSERT_TRUE(live_->until([&] { return client->take_answer().has_value(); }));
  EXPECT_TRUE(live_->until_kept());
  EXPECT_EQ(tally().saves, 0u);
  EXPECT_EQ(live_->door().uncached.reason, "server_changed");
}

TEST_F(Completion, WhatComputesFasterIsNotRestored) {
  server().ms_per_token = 1e-6;
  live_->complete(text_of("a", 100), R"(,"id_slot":0)");
  // The first restore is tried, as its cost is not known.
  EXPECT_EQ(cache_n(live_->complete(text_of("a", 100) + "?", R"(,"id_slot":1)")), 96u);
  live_->complete(text_of("b", 100), R"(,"id_slot":0)");
  const Answer answer = live_->complete(text_of("a", 100) + "!", R"(,"id_slot":0)");
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "not_worth");
  EXPECT_EQ(cache_n(answer), 0u);
}

TEST_F(Completion, WhatCannotBeCachedIsAnsweredWithItsReason) {
  const Answer off = live_->complete(text_of("a", 100), R"(,"cache_prompt":false)");
  EXPECT_EQ(off.status, 200u);
  EXPECT_EQ(off.headers.at("x-kvkeep-reason"), "cache_prompt");
  EXPECT_EQ(live_->ask("/completion", "{]").status, 400u);
  EXPECT_EQ(tally().completions_uncached, 2u);
  EXPECT_EQ(tally().reasons.at("not_json"), 1u);
  EXPECT_EQ(tally().saves, 0u);
}

TEST_F(Completion, AServerThatDoesNotTokenizeIsStillAsked) {
  server().scripts["/tokenize"].pieces = {"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"};
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.at("x-kvkeep-reason"), "tokenize");
}

TEST_F(Completion, NoTwoAreInOneSlotAtATime) {
  server().holds_completions = true;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 7; ++i) {
    clients.push_back(live_->connect());
    const std::string prompt = text_of(i % 2 == 0 ? "a" : "b", 100) + std::to_string(i);
    clients.back()->send(request_text("POST", "/completion", prompt_body(prompt)));
  }
  size_t answered = 0;
  while (answered < clients.size()) {
    ASSERT_TRUE(live_->until([&] { return server().holding() > 0; }));
    EXPECT_LE(server().holding(), 2u);
    server().resume();
    const size_t before = answered;
    ASSERT_TRUE(live_->until([&] {
      for (const auto& client : clients) answered += client->take_answer().has_value() ? 1 : 0;
      return answered > before;
    }));
  }
  EXPECT_TRUE(live_->until_kept());
  EXPECT_EQ(server().overlaps, 0u);
  EXPECT_EQ(server().wrong_files, 0u);
}

TEST_F(Completion, AClientThatLeavesEndsItsRequestAndFreesTheSlot) {
  server().holds_completions = true;
  auto client = live_->connect();
  client->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  ASSERT_TRUE(live_->until([&] { return server().holding() == 1; }));
  client.reset();
  ASSERT_TRUE(live_->until([&] { return server().left == 1; }));
  EXPECT_TRUE(live_->until([&] { return tally().client_left == 1; }));
  EXPECT_TRUE(live_->until_kept());
  EXPECT_FALSE(live_->door().gate->slots()[0].is_reserved);
  // What was computed by then is kept.
  EXPECT_EQ(tally().blocks_stored, 3u);
  EXPECT_EQ(server().overlaps, 0u);
}

TEST_F(Completion, AClientThatLeavesWhileItWaitsIsNotAskedFor) {
  start(1);
  server().holds_completions = true;
  auto first = live_->connect(), second = live_->connect();
  first->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  ASSERT_TRUE(live_->until([&] { return server().holding() == 1; }));
  second->send(request_text("POST", "/completion", prompt_body(text_of("b", 100))));
  ASSERT_TRUE(live_->until([&] { return live_->door().gate->waiting() == 1; }));
  second.reset();
  ASSERT_TRUE(live_->until([&] { return live_->door().gate->waiting() == 0; }));
  server().resume();
  ASSERT_TRUE(live_->until([&] { return first->take_answer().has_value(); }));
  EXPECT_TRUE(live_->until_kept());
  EXPECT_EQ(server().requests_to("/completion").size(), 1u);
}

// A client that left has said nothing that was computed in its slot: what is there is of another.
TEST_F(Completion, AClientThatLeavesStoresNothingOfTheOneBefore) {
  start(1);
  const std::string secret = text_of("a", 100);
  live_->complete(secret, "", "x-kvkeep-store: off\r\n");
  server().scripts["/completion"].pieces = {Script::kHold};
  auto client = live_->connect();
  client->send(request_text("POST", "/completion", prompt_body(text_of("b", 100))));
  ASSERT_TRUE(live_->until([&] { return server().holding() == 1; }));
  client.reset();
  ASSERT_TRUE(live_->until([&] { return tally().client_left == 1; }));
  server().resume();
  EXPECT_TRUE(live_->until_kept());
  server().scripts.clear();
  EXPECT_EQ(tally().blocks_stored, 0u);
  start(1);
  EXPECT_EQ(cache_n(live_->complete(secret + "?")), 0u);
}

TEST_F(Completion, AServerThatEndsBeforeItAnswersIsABadGateway) {
  server().scripts["/completion"].pieces = {};
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 502u);
  EXPECT_THAT(Json::parse(answer.body)["error"]["message"].get<std::string>(),
              HasSubstr("end of stream"));
  EXPECT_EQ(tally().server_failed, 1u);
  EXPECT_FALSE(live_->door().gate->slots()[0].is_reserved);
}

TEST_F(Completion, AServerThatEndsInItsAnswerCutsTheClients) {
  server().scripts["/completion"].pieces = {
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_FALSE(answer.whole);
  EXPECT_EQ(tally().server_failed, 1u);
}

TEST_F(Completion, AnErrorOfTheServerIsPassedOnAndNothingIsStored) {
  server().scripts["/completion"].pieces = {
      "HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nnono"};
  const Answer answer = live_->complete(text_of("a", 100));
  EXPECT_EQ(answer.status, 400u);
  EXPECT_EQ(answer.body, "nono");
  EXPECT_EQ(tally().saves + tally().save_failures, 0u);
}

// The program may end while requests wait for a slot that another one has.
TEST_F(Completion, TheEndOfTheProgramFindsRequestsThatWait) {
  start(1);
  server().holds_completions = true;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(live_->connect());
    clients.back()->send(request_text("POST", "/completion", prompt_body(text_of("a", 100))));
  }
  ASSERT_TRUE(live_->until([&] { return live_->door().gate->waiting() == 2; }));
  live_->end_at_once();
  clients.clear();
  live_.reset();
}

TEST_F(Completion, WhyTellsWhatIsCovered) {
  live_->complete(text_of("a", 100));
  const auto why = [&](const std::string& body) {
    const Json said = Json::parse(live_->ask("/kvkeep/why", body).body);
    return said["covered_tokens"].get<uint64_t>();
  };
  EXPECT_EQ(Json::parse(live_->ask("/kvkeep/why", prompt_body("hi")).body)["reason"], "short");
  EXPECT_EQ(why(prompt_body(text_of("a", 100) + "?")), 96u);
  EXPECT_EQ(why(prompt_body(text_of("b", 100))), 0u);
  EXPECT_EQ(live_->ask("/kvkeep/why", "{}").status, 400u);
  EXPECT_EQ(server().requests_to("/completion").size(), 1u);
}

}  // namespace
}  // namespace kvkeep::daemon
