// PromptStore: the prompts of one server in a store on disk, in and out as slot files.
//
// Threads:  any thread.
// Blocking: match() looks at memory only; assemble(), keep(), find_elsewhere() and close() read and
// write.
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
#include "daemon/slots/mapped_file.h"
#include "daemon/slots/whole_slots.h"
#include "kvkeep/block_cache.h"
#include "kvkeep/prefix_cache.h"
#include "kvkeep/why.h"

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

// Slot files whose state is of a kind that cannot be cut: about how long they are, in bytes.
struct WholeForm {
  uint64_t first_token = 0;
  uint64_t per_token = 0;
};

// Whose states these are: what else they depend on besides tokens.
struct ServerIdentity {
  std::string model_name;                     // For people.
  std::map<std::string, std::string> fields;  // Model digest, build, layout, adapters, ….
  llama::SlotLayout layout{};                 // Not of whole slots.
  std::optional<WholeForm> whole{};           // Slots are kept whole (whole_slots.h).
};

// Of a slot file with so many tokens, in bytes; of whole slots about.
uint64_t slot_file_bytes(const ServerIdentity& identity, uint64_t tokens);

// A slot file that the server has saved.
struct SavedSlot {
  std::vector<uint32_t> tokens{};
  std::optional<llama::SlotFile> cut{};  // Unless slots are kept whole.
  std::shared_ptr<MappedFile> file{};
  bool has_other_layout = false;  // Than the store is for.
};

// Where the store has a prompt that was stored by a server of another kind.
struct Elsewhere {
  std::vector<FieldDifference> differences{};  // Of the namespace that differs least.
  std::string text{};                          // One sentence for a person.
};

struct Assembled {
  uint64_t tokens = 0;              // That the file holds; 0: there is no file.
  uint64_t bytes = 0;               // Of the file.
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

  // What a saved file holds. Errors of parse_slot_file().
  Result<SavedSlot> read(std::shared_ptr<MappedFile> file) const;
  // Stores what is not there yet of a saved slot.
  Result<StoreReport> keep(const SavedSlot& slot, const std::string& salt);
  // For a prompt without any salt, of which match() finds nothing. Reads the store.
  std::optional<Elsewhere> find_elsewhere(std::span<const uint32_t> tokens) const;

  bool is_whole() const { return identity_.whole.has_value(); }
  uint64_t file_bytes(uint64_t tokens) const { return slot_file_bytes(identity_, tokens); }

  const ServerIdentity& identity() const { return identity_; }
  const StoreSettings& settings() const { return settings_; }
  TieredBlockCache& cache() { return *cache_; }
  PrefixStats prefix_stats() const {
    return prefixes_ != nullptr ? prefixes_->stats() : PrefixStats();
  }
  Status close();

 private:
  PromptStore(StoreSettings settings, ServerIdentity identity);

  Status open_prefixes();
  Result<Assembled> write_whole(const PrefixMatch& match, const std::filesystem::path& file);
  std::string salt_of(const std::string& request) const;
  std::optional<Elsewhere> find_whole_elsewhere(std::span<const uint32_t> tokens) const;
  Status write_file(const PrefixMatch& match, std::span<const uint32_t> tokens, uint32_t slot,
                    const std::filesystem::path& file, Assembled& done);
  Result<uint64_t> put_together(const PrefixMatch& match, std::span<const uint32_t> tokens,
                                uint32_t slot, std::span<std::byte> memory, Assembled& done);
  Result<uint64_t> fill(llama::SlotWriter& writer, const PrefixMatch& match, Assembled& done);

  const StoreSettings settings_;
  const ServerIdentity identity_;
  std::unique_ptr<TieredBlockCache> cache_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;  // Null if slots are kept whole.
  std::optional<WholeSlots> whole_{};
  std::mutex assembling_;
  // Of the file that is put together; kept, since new memory is slow.
  std::vector<std::byte> memory_;
};

}  // namespace kvkeep::daemon
