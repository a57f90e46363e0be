// WholeSlots: slots whose state cannot be cut into blocks, kept whole.
//
// The state of a sliding window or of a recurrent model belongs to its last token. A slot is stored
// as it is at the end of a request, under the key of all its tokens, and found by a prompt that
// begins with all of them: the next turn of a chat.
//
// Threads:  any thread.
// Blocking: match() looks at memory only; the others read and write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/prefix_cache.h"
#include "kvkeep/why.h"

namespace kvkeep::daemon {

// A slot that the prompt begins with, and goes on after, in a namespace that is not asked for.
struct OtherWholeSlot {
  uint64_t tokens = 0;
  OtherNamespace where{};
};

class WholeSlots {
 public:
  // The cache must outlive it. kInvalidArgument as KeyChain::open().
  static Result<WholeSlots> open(TieredBlockCache& cache, Namespace fields, std::string model_name);

  // The longest stored slot that the prompt begins with, and goes on after, as a match of one
  // "block" that is leased. Costs a digest for each token.
  Result<PrefixMatch> match(std::span<const uint32_t> tokens, const std::string& salt);
  // The file's bytes. Errors as TieredBlockCache::load_block().
  Result<Tensor> load(const PrefixMatch& match);
  Result<StoreReport> keep(std::span<const uint32_t> tokens, const Tensor& file,
                           const std::string& salt);
  // The longest in each other namespace without a salt that was used in this store; those that
  // differ least first. Costs a digest and a look at the disk for each token and namespace.
  Result<std::vector<OtherWholeSlot>> find_elsewhere(std::span<const uint32_t> tokens,
                                                     const std::filesystem::path& store) const;

 private:
  WholeSlots(TieredBlockCache& cache, Namespace fields, std::string model_name)
      : cache_(&cache), fields_(std::move(fields)), model_name_(std::move(model_name)) {}

  Result<KeyChain> chain(const std::string& salt) const;

  TieredBlockCache* cache_;
  Namespace fields_;
  std::string model_name_;
};

}  // namespace kvkeep::daemon
