// PromptStore: the prompts of one server in a store on disk, in and out as slot files.
//
// Threads:  any thread.
// Blocking: match() and why() look at memory only; assemble(), keep() and close() read and write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_layout.h"
#include "kvkeep/block_cache.h"
#include "kvkeep/prefix_cache.h"

namespace kvkeep::llama {
class SlotWriter;
}

namespace kvkeep::daemon {

struct StoreSettings {
  std::filesystem::path dir;
  uint64_t max_size = 0;  // Bytes on disk.
  uint64_t hot_size = 0;  // Bytes of RAM.
  uint32_t block_size = 64;
  std::string salt{};  // Prompts stored with another are not found.
};

// Whose states these are: what else they depend on besides tokens.
struct ServerIdentity {
  std::string model_name;                     // For people.
  std::map<std::string, std::string> fields;  // Model digest, build, layout, adapters, ….
  llama::SlotLayout layout;
};

struct Assembled {
  uint64_t tokens = 0;              // That the file holds; 0: there is no file.
  uint64_t bytes = 0;               // Of the file.
  uint64_t blocks_on_disk = 0;      // Of the blocks, those that were read from disk.
  std::optional<MissReason> end{};  // Why they are fewer than matched.
};

class PromptStore {
 public:
  // Errors as TieredBlockCache::open().
  static Result<std::unique_ptr<PromptStore>> open(const StoreSettings& settings,
                                                   ServerIdentity identity,
                                                   Environment environment);

  // `salt`: of this request, on top of the store's own.
  Result<PrefixMatch> match(std::span<const uint32_t> tokens, const std::string& salt);

  // Writes the matched prefix of `tokens` as a file that the server can restore into `slot`. Blocks
  // that turn out damaged or gone end it early.
  Result<Assembled> assemble(const PrefixMatch& match, std::span<const uint32_t> tokens,
                             uint32_t slot, const std::filesystem::path& file);

  // Stores the blocks of a saved slot that are not there yet.
  Result<StoreReport> keep(const llama::SlotFile& slot, const std::string& salt);

  const ServerIdentity& identity() const { return identity_; }
  const StoreSettings& settings() const { return settings_; }
  TieredBlockCache& cache() { return *cache_; }
  PrefixStats prefix_stats() const { return prefixes_->stats(); }
  Status close();

 private:
  PromptStore(StoreSettings settings, ServerIdentity identity);

  std::string salt_of(const std::string& request) const;
  Status write_file(const PrefixMatch& match, std::span<const uint32_t> tokens, uint32_t slot,
                    const std::filesystem::path& file, Assembled& done);
  Result<uint64_t> put_together(const PrefixMatch& match, std::span<const uint32_t> tokens,
                                uint32_t slot, std::span<std::byte> memory, Assembled& done);
  Result<uint64_t> fill(llama::SlotWriter& writer, const PrefixMatch& match, Assembled& done);

  const StoreSettings settings_;
  const ServerIdentity identity_;
  std::unique_ptr<TieredBlockCache> cache_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  std::mutex assembling_;
  std::vector<std::byte>
      memory_;  // Of the file that is put together; kept, since new memory is slow.
};

}  // namespace kvkeep::daemon
