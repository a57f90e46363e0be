// proves("SAVE-01", "LIFE-02"): the ids of docs/contract.md that the running test shows to hold.
// They go into the test's XML as the property "proves", which tools/conformance_coverage reads. At
// most five.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace kvkeep::testing {

template <typename... Ids>
void proves(const Ids&... ids) {
  static_assert(sizeof...(Ids) >= 1 && sizeof...(Ids) <= 5, "a test shows a few things, not many");
  std::string all;
  ((all += (all.empty() ? "" : " ") + std::string(ids)), ...);
  ::testing::Test::RecordProperty("proves", all);
}

}  // namespace kvkeep::testing
