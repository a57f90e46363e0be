// Matchers for Status and Result<T>, which print the message when they do not match.
//
//   EXPECT_THAT(fs.unlink("a"), is_ok());
//   EXPECT_THAT(fs.unlink("a"), fails_with(Code::kNotFound, ENOENT));
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "kvkeep/status.h"

namespace kvkeep::testing {

inline const Status& status_of(const Status& status) { return status; }
template <typename T>
Status status_of(const Result<T>& result) {
  return result.status();
}

MATCHER(is_ok, "is ok") {
  *result_listener << status_of(arg).to_string();
  return status_of(arg).ok();
}

MATCHER_P2(fails_with, code, error, "fails with that code and errno") {
  const Status status = status_of(arg);
  *result_listener << status.to_string() << " (errno " << status.sys_errno() << ")";
  return status.code() == code && status.sys_errno() == error;
}

}  // namespace kvkeep::testing

namespace kvkeep {

// What gtest prints for the values.
inline void PrintTo(const Status& status, std::ostream* out) { *out << status.to_string(); }
template <typename T>
void PrintTo(const Result<T>& result, std::ostream* out) {
  *out << result.status().to_string();
}

}  // namespace kvkeep
