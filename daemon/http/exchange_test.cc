// Requests that are only passed through: what the server gets, and what the client does.

#include "daemon/http/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/testing/live_door.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kSecond =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nsecond";

// Not brought up: nothing is asked of the server but what the client asks.
class PassThrough : public ::testing::Test {
 protected:
  PassThrough() : live_(dir_.path()) {
    live_.door().stop_caching("router", "several models");
    live_.door().settle();
    server().scripts["/second"].pieces = {kSecond};
  }
  FakeServer& server() { return live_.server(); }
  void script(std::vector<std::string> pieces) {
    server().scripts["/x"].pieces = std::move(pieces);
  }
  bool until(const std::function<bool()>& done) { return live_.until(done); }

  // The next answer to this client.
  Answer next(TestClient& client, bool to_head = false) {
    std::optional<Answer> answer;
    EXPECT_TRUE(until([&] { return (answer = client.take_answer(to_head)).has_value(); }));
    return answer.value_or(Answer());
  }
  Answer get(const std::string& headers = "") {
    client_ = live_.connect();
    client_->send(request_text("GET", "/x", "", headers));
    return next(*client_);
  }
  // Whether the same connection serves another request.
  void expect_another() {
    client_->send(request_text("GET", "/second"));
    EXPECT_EQ(next(*client_).body, "second");
  }
  void expect_closed() {
    EXPECT_TRUE(until([this] { return client_->was_closed(); }));
  }

  testing::TempDir dir_;
  LiveDoor live_;
  std::unique_ptr<TestClient> client_;
};

// Every byte, among them those of HTTP itself.
std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes + "\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
}

TEST_F(PassThrough, ABodyWithALengthArrivesAsItIs) {
  const std::string body = all_bytes();
  script(
      {"HTTP/1.1 200 Fine\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body});
  const Answer answer = get();
  EXPECT_EQ(answer.body, body);
  EXPECT_EQ(answer.headers.at("content-length"), std::to_string(body.size()));
  expect_another();
}

TEST_F(PassThrough, AChunkedBodyArrivesAsItIs) {
  script({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhel", "lo\r\n1\r\n!\r\n",
          "0\r\nTrailer: x\r\n\r\n"});
  const Answer answer = get();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body, "hello!");
  expect_another();
}

TEST_F(PassThrough, ABodyThatEndsWithTheConnectionBecomesChunked) {
  script({"HTTP/1.1 200 OK\r\n\r\n", all_bytes()});
  const Answer answer = get();
  EXPECT_EQ(answer.body, all_bytes());
  EXPECT_EQ(answer.headers.at("transfer-encoding"), "chunked");
  expect_another();
}

TEST_F(PassThrough, OldClientsGetABodyThatEndsWithTheConnection) {
  script({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"});
  client_ = live_.connect();
  client_->send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  expect_closed();
  EXPECT_THAT(client_->received(), StartsWith("HTTP/1.0 200"));
  EXPECT_THAT(client_->received(), Not(HasSubstr("chunked")));
  EXPECT_EQ(next(*client_).body, "hi");
}

TEST_F(PassThrough, OldClientsMayKeepTheirConnectionWhereTheLengthIsKnown) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"});
  client_ = live_.connect();
  client_->send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(next(*client_).body, "hi");
  expect_another();
}

TEST_F(PassThrough, ALargeBodyArrivesWhole) {
  const std::string body = text_of("large", 3 << 20);
  script({"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n", body});
  client_ = live_.connect();
  client_->send(request_text("GET", "/x"));
  EXPECT_TRUE(until([&] { return client_->received().size() > body.size(); }));
  EXPECT_EQ(next(*client_).body, body);
}

TEST_F(PassThrough, EachPieceIsPassedOnAtOnce) {
  script({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Script::kHold, "3\r\none\r\n",
          Script::kHold, "3\r\ntwo\r\n0\r\n\r\n"});
  client_ = live_.connect();
  client_->send(request_text("GET", "/x"));
  EXPECT_TRUE(until([&] { return client_->received().find("\r\n\r\n") != std::string::npos; }));
  server().resume();
  EXPECT_TRUE(until([&] { return client_->received().find("one") != std::string::npos; }));
  server().resume();
  EXPECT_EQ(next(*client_).body, "onetwo");
}

TEST_F(PassThrough, HeadHasALengthAndNoBody) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"});
  client_ = live_.connect();
  client_->send(request_text("HEAD", "/x"));
  const Answer answer = next(*client_, true);
  EXPECT_EQ(answer.headers.at("content-length"), "77");
  expect_another();
}

TEST_F(PassThrough, AnswersWithoutABodyEndWithTheirHead) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    script({std::string("HTTP/1.1 ") + status + "\r\n\r\n"});
    EXPECT_EQ(get().body, "") << status;
    expect_another();
  }
  script({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"});
  EXPECT_EQ(get().headers.at("content-length"), "0");
  expect_another();
}

TEST_F(PassThrough, ASecondRequestMayFollowBeforeTheFirstIsAnswered) {
  script({Script::kHold, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"});
  client_ = live_.connect();
  client_->send(request_text("POST", "/x", "body") + request_text("GET", "/second"));
  EXPECT_TRUE(until([&] { return server().holding() == 1; }));
  EXPECT_EQ(server().requests.size(), 1u);
  server().resume();
  EXPECT_EQ(next(*client_).body, "first");
  EXPECT_EQ(next(*client_).body, "second");
}

TEST_F(PassThrough, ACloseIsAnsweredWithAClose) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"});
  EXPECT_EQ(get("Connection: close\r\n").headers.at("connection"), "close");
  expect_closed();
}

TEST_F(PassThrough, HeadersOfOneConnectionStayThere) {
  script(
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"
       "Keep-Alive: timeout=5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nX-Kept: y\r\n\r\nhi"});
  const Answer answer =
      get("Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nX-Other: z\r\n");
  EXPECT_EQ(answer.headers.count("x-hop") + answer.headers.count("keep-alive"), 0u);
  EXPECT_EQ(answer.headers.at("x-kept"), "y");
  EXPECT_EQ(answer.headers.at("set-cookie"), "b");
  const auto& seen = server().requests.at(0).headers;
  EXPECT_EQ(seen.count("x-mine") + seen.count("te"), 0u);
  EXPECT_EQ(seen.at("x-other"), "z");
  EXPECT_EQ(seen.at("host"), "here");
  EXPECT_EQ(seen.at("connection"), "close");
  expect_another();
}

// Else the body would be taken for a request of its own.
TEST_F(PassThrough, NoHeaderTakesTheLengthAway) {
  script({"HTTP/1.1 200 OK\r\nConnection: Content-Length\r\nContent-Length: 2\r\n\r\nhi"});
  client_ = live_.connect();
  client_->send(request_text("POST", "/x", "GET /secret", "Connection: content-length\r\n"));
  EXPECT_EQ(next(*client_).body, "hi");
  EXPECT_EQ(server().requests.at(0).body, "GET /secret");
  expect_another();
}

TEST_F(PassThrough, AChunkedRequestArrivesAsItIs) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
  client_ = live_.connect();
  client_->send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab\r\n\r\n");
  client_->send("2\r\ncd\r\n0\r\n\r\n");
  EXPECT_EQ(next(*client_).body, "ok");
  EXPECT_EQ(server().requests.at(0).body, "ab\r\ncd");
  expect_another();
}

TEST_F(PassThrough, WhoExpectsAnAnswerBeforeTheBodyGetsIt) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
  client_ = live_.connect();
  client_->send("POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_TRUE(until([&] { return client_->received().size() == go_on.size(); }));
  EXPECT_EQ(client_->received(), go_on);
  client_->send("body");
  EXPECT_TRUE(until([&] { return client_->received().size() > go_on.size(); }));
  EXPECT_THAT(client_->received(), HasSubstr("200 OK"));
  EXPECT_EQ(server().requests.at(0).headers.count("expect"), 0u);
  EXPECT_EQ(server().requests.at(0).body, "body");
}

TEST_F(PassThrough, AServerThatEndsBeforeItsAnswerIsABadGateway) {
  script({});
  EXPECT_EQ(get().status, 502u);
  expect_closed();
  EXPECT_EQ(live_.door().tally.server_failed, 1u);
}

TEST_F(PassThrough, NonsenseOfTheServerIsABadGateway) {
  script({"SSH-2.0-OpenSSH\r\n\r\n"});
  EXPECT_EQ(get().status, 502u);
}

TEST_F(PassThrough, AServerThatEndsInTheMiddleEndsTheConnection) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"});
  const Answer answer = get();
  EXPECT_EQ(answer.body, "hello");
  EXPECT_FALSE(answer.whole);
  EXPECT_EQ(live_.door().tally.server_failed, 1u);
}

// What is left of the body is no request, which would have an answer of its own.
TEST_F(PassThrough, AServerThatAnswersEarlyEndsTheConnection) {
  server().scripts["/x"] = {{"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"}, true};
  client_ = live_.connect();
  client_->send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 80000000\r\n\r\n");
  client_->send(std::string(16 << 20, 'x'));
  expect_closed();
  next(*client_);
  EXPECT_EQ(client_->received(), "");
}

TEST_F(PassThrough, AClientThatLeavesDuringTheAnswerEndsIt) {
  script({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Script::kHold});
  client_ = live_.connect();
  client_->send(request_text("GET", "/x"));
  EXPECT_TRUE(until([&] { return client_->received().find("hello") != std::string::npos; }));
  client_->close_sending();
  expect_closed();
  EXPECT_EQ(live_.door().tally.server_failed, 0u);
  EXPECT_EQ(live_.door().requests_running, 0u);
}

TEST_F(PassThrough, AClientThatLeavesBeforeItsBodyIsThereIsNoFaultOfTheServer) {
  client_ = live_.connect();
  client_->send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
  run_ready(live_.io());
  client_->close_sending();
  expect_closed();
  EXPECT_EQ(live_.door().tally.server_failed, 0u);
  EXPECT_EQ(live_.door().tally.client_left, 1u);
  EXPECT_EQ(client_->received(), "");
}

TEST_F(PassThrough, AClientThatStoppedReadingAndLeavesIsLetGo) {
  script({"HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n", std::string(8 << 20, 'x')});
  client_ = live_.connect();
  client_->stop_reading();
  client_->send(request_text("GET", "/x"));
  EXPECT_TRUE(until([&] { return live_.door().requests_running == 1; }));
  run_ready(live_.io());
  client_->close_sending();
  EXPECT_TRUE(until([&] { return live_.door().requests_running == 0; }));
}

TEST_F(PassThrough, AClientThatAsksNothingIsClosed) {
  live_.door().client_patience = std::chrono::milliseconds(1);
  client_ = live_.connect();
  expect_closed();
  client_ = live_.connect();
  client_->send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
  expect_closed();
  EXPECT_EQ(client_->received(), "");
  EXPECT_EQ(live_.door().requests_running, 0u);
}

TEST_F(PassThrough, WhatIsNoRequestIsRefused) {
  client_ = live_.connect();
  client_->send("HELLO\r\n\r\n");
  EXPECT_EQ(next(*client_).status, 400u);
  expect_closed();
  client_ = live_.connect();
  client_->send("GET / HTTP/1.1\r\nX: " + std::string(300 << 10, 'x') + "\r\n\r\n");
  EXPECT_EQ(next(*client_).status, 431u);
}

TEST_F(PassThrough, BodiesOfTwoLengthsAreRefused) {
  client_ = live_.connect();
  client_->send(
      "POST /x HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(next(*client_).status, 400u);
  EXPECT_TRUE(server().requests.empty());
}

TEST_F(PassThrough, OwnPagesNeedTheKey) {
  live_.door().api_keys = {"secret"};
  EXPECT_EQ(live_.ask("/kvkeep/stats", "").status, 401u);
  EXPECT_EQ(live_.ask("/kvkeep/stats", "", "Authorization: Bearer secret\r\n").status, 200u);
  EXPECT_EQ(live_.ask("/kvkeep/nothing", "", "X-Api-Key: secret\r\n").status, 404u);
  EXPECT_TRUE(server().requests.empty());
}

TEST_F(PassThrough, AnErrorPageIsWhole) {
  client_ = live_.connect();
  client_->send(request_text("HEAD", "/kvkeep/metrics"));
  EXPECT_EQ(next(*client_, true).status, 200u);
  client_->send(request_text("GET", "/kvkeep/why"));
  const Answer answer = next(*client_);
  EXPECT_EQ(answer.status, 405u);
  EXPECT_EQ(answer.headers.at("allow"), "POST");
  expect_another();
}

}  // namespace
}  // namespace kvkeep::daemon
