// What the tests of requests of other forms expect of them.
//
// Threads: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/requests/completion_request.h"

namespace kvkeep::daemon {

struct FormCase {
  const char *body, *result;
};

// That the chat request of `body` is `chat`, whose members are in the same order.
inline void expect_chat(Route route, const char* body, const char* chat) {
  const CompletionRequest request = read_completion_request(route, body, true);
  ASSERT_TRUE(request.template_body) << body << ": " << request.uncached.value_or("");
  EXPECT_FALSE(request.uncached);
  EXPECT_EQ(*request.template_body, nlohmann::ordered_json::parse(chat).dump()) << body;
}

inline void expect_uncached(Route route, const char* body, const char* reason) {
  const CompletionRequest request = read_completion_request(route, body, true);
  EXPECT_EQ(request.uncached, reason) << body;
  EXPECT_FALSE(request.template_body) << body;
}

}  // namespace kvkeep::daemon
