// FixedSystem has the RAM that a test says.
//
// Threads: any thread.
#pragma once

#include <utility>

#include "kvkeep/environment.h"

namespace kvkeep::testing {

class FixedSystem final : public SystemInfo {
 public:
  static constexpr int64_t kPage = 4096;

  explicit FixedSystem(int64_t ram_gib) : FixedSystem(kPage, (ram_gib << 30) / kPage) {}
  FixedSystem(Result<int64_t> page, Result<int64_t> pages)
      : page_(std::move(page)), pages_(std::move(pages)) {}

  Result<int64_t> page_size() const override { return page_; }
  Result<int64_t> physical_pages() const override { return pages_; }

 private:
  const Result<int64_t> page_, pages_;
};

}  // namespace kvkeep::testing
