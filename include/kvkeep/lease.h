// Lease: blocks that stay while somebody is about to use them.
//
//   auto lease = cache->lease(keys, std::chrono::seconds(60), "request 17");
//   if (lease.ok()) cache->load_blocks(std::span(keys).first(lease->size()), ...);
//
// A leased block is neither evicted nor swept until every lease on it is released or has expired,
// and delete_block() refuses it unless forced. It may still vanish: forgotten, found damaged,
// cleared, removed from outside, or not written yet and without room beside other leased blocks.
// Leases live in this process; a loaded block needs none.
//
// Threads:   one thread at a time each.
// Ownership: a lease may outlive its cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kvkeep/reason.h"
#include "kvkeep/source.h"

namespace kvkeep {

struct LeasedBlock {
  Source source = Source::kDisk;  // Where a load would have found it.
  // Changes when the block leaves and is saved again, so that what was known of it can be told
  // apart from what is there now.
  uint64_t generation = 0;
};

class Lease {
 public:
  // What gives the blocks free when it ends.
  struct Hold {
    virtual ~Hold() = default;
  };

  Lease() = default;
  Lease(std::vector<LeasedBlock> blocks, std::unique_ptr<Hold> hold)
      : blocks_(std::move(blocks)), hold_(std::move(hold)) {}

  // The blocks of the first size() keys, in their order.
  const std::vector<LeasedBlock>& blocks() const { return blocks_; }
  size_t size() const { return blocks_.size(); }
  // Why the key after them is not held. Nothing if all are.
  std::optional<MissReason> end() const { return end_; }
  void set_end(MissReason why) { end_ = why; }
  // Idempotent; so does the destructor. Memory only.
  void release() { hold_.reset(); }

 private:
  std::vector<LeasedBlock> blocks_;
  std::optional<MissReason> end_;
  std::unique_ptr<Hold> hold_;
};

}  // namespace kvkeep
