#include "daemon/slots/prompt_store.h"

#include <unistd.h>

#include <algorithm>

#include "connectors/llama/slot_tokens.h"
#include "connectors/llama/slot_writer.h"

namespace kvkeep::daemon {
namespace {

// Blocks that are read with one submission; more of them need not be in RAM at the same time.
constexpr uint64_t kBatchBytes = 256 << 20;
constexpr size_t kMaxPoolBlocks = 4 << 20;
// Files up to this size are put together in memory that stays.
constexpr uint64_t kKeptBytes = 64 << 20;

}  // namespace

PromptStore::PromptStore(StoreSettings settings, ServerIdentity identity)
    : settings_(std::move(settings)), identity_(std::move(identity)) {}

Result<std::unique_ptr<PromptStore>> PromptStore::open(const StoreSettings& settings,
                                                       ServerIdentity identity,
                                                       Environment environment) {
  std::unique_ptr<PromptStore> store(new PromptStore(settings, std::move(identity)));
  Options options;
  options.cache_dir = settings.dir;
  options.max_size_bytes = settings.max_size;
  options.hot_max_bytes = settings.hot_size;
  if (!store->is_whole()) {  // Whole slots have any number of tokens.
    options.model_name = store->identity_.model_name;
    options.block_size = settings.block_size;
  }
  options.identity = store->identity_.fields;
  options.block_size_tokens = settings.block_size;
  options.kv_bytes_per_token =
      std::max<uint64_t>(1, store->is_whole() ? store->identity_.whole->per_token
                                              : llama::bytes_per_token(store->identity_.layout));
  KVKEEP_TRY_ASSIGN(store->cache_,
                    TieredBlockCache::open(std::move(options), std::move(environment)));
  if (store->is_whole()) {
    KVKEEP_TRY_ASSIGN(store->whole_, WholeSlots::open(*store->cache_, store->identity_.fields,
                                                      store->identity_.model_name));
  } else {
    KVKEEP_TRY(store->open_prefixes());
  }
  return store;
}

Status PromptStore::open_prefixes() {
  const uint64_t block_bytes =
      std::max<uint64_t>(1, settings_.block_size * llama::bytes_per_token(identity_.layout));
  const uint64_t blocks = (settings_.max_size + settings_.hot_size) / block_bytes + 1024;
  pool_ =
      std::make_unique<BlockPool>(settings_.block_size, std::min<uint64_t>(blocks, kMaxPoolBlocks));
  PrefixOptions prefix;
  prefix.fields = identity_.fields;
  prefix.partial_tails = PartialTails::kNone;
  KVKEEP_TRY_ASSIGN(prefixes_, PrefixCache::open(*pool_, *cache_, std::move(prefix)));
  return Status();
}

uint64_t slot_file_bytes(const ServerIdentity& identity, uint64_t tokens) {
  if (!identity.whole.has_value()) return llama::slot_file_bytes(identity.layout, tokens);
  return identity.whole->first_token + tokens * identity.whole->per_token;
}

Result<SavedSlot> PromptStore::read(std::shared_ptr<MappedFile> file) const {
  SavedSlot slot;
  if (is_whole()) {
    KVKEEP_TRY_ASSIGN(llama::SlotTokens tokens, llama::read_slot_tokens(file->bytes()));
    slot.tokens = std::move(tokens.tokens);
  } else {
    KVKEEP_TRY_ASSIGN(slot.cut, llama::parse_slot_file(file->bytes(), file));
    slot.tokens = slot.cut->tokens;
    // A slot without tokens tells nothing of the layout.
    slot.has_other_layout = !slot.tokens.empty() && slot.cut->layout != identity_.layout;
  }
  slot.file = std::move(file);
  return slot;
}

// The length keeps two salts apart from one that reads like both.
std::string PromptStore::salt_of(const std::string& request) const {
  if (settings_.salt.empty()) return request;
  return std::to_string(settings_.salt.size()) + ":" + settings_.salt + request;
}

Result<PrefixMatch> PromptStore::match(std::span<const uint32_t> tokens, const std::string& salt) {
  const std::string both = salt_of(salt);
  if (is_whole()) return whole_->match(tokens, both);
  return prefixes_->match({.tokens = tokens, .salt = both});
}

Result<uint64_t> PromptStore::fill(llama::SlotWriter& writer, const PrefixMatch& match,
                                   Assembled& done) {
  const uint64_t block_bytes = settings_.block_size * llama::bytes_per_token(identity_.layout);
  const size_t batch = std::max<uint64_t>(1, kBatchBytes / std::max<uint64_t>(1, block_bytes));
  uint64_t tokens = 0;
  for (size_t first = 0; first < match.blocks.size() && tokens < done.tokens; first += batch) {
    const size_t count = std::min(batch, match.blocks.size() - first);
    std::vector<BlockHash> keys;
    for (size_t i = first; i < first + count; ++i) keys.push_back(match.blocks[i].key);
    LoadOptions how;
    how.tokens = std::span(match.digests).subspan(first, count);
    const BatchResult blocks = cache_->load_blocks(keys, BatchMode::kPrefix, how);
    for (const Result<LoadedBlock>& block : blocks) {
      if (!block.ok()) {
        done.end = block.status().miss_reason();
        return tokens;
      }
      if (tokens >= done.tokens) break;
      const uint64_t used = std::min<uint64_t>(block->info.token_count, done.tokens - tokens);
      KVKEEP_TRY(writer.put(tokens, *block, used));
      tokens += used;
    }
  }
  return tokens;
}

// The number of tokens that are whole; all of them: the file is.
Result<uint64_t> PromptStore::put_together(const PrefixMatch& match,
                                           std::span<const uint32_t> tokens, uint32_t slot,
                                           std::span<std::byte> memory, Assembled& done) {
  KVKEEP_TRY_ASSIGN(
      llama::SlotWriter writer,
      llama::SlotWriter::begin(identity_.layout, slot, tokens.first(done.tokens), memory));
  KVKEEP_TRY_ASSIGN(const uint64_t filled, fill(writer, match, done));
  if (filled == done.tokens) KVKEEP_TRY(writer.finish());
  return filled;
}

// Leaves in `done` what the file holds, if that is not all, and no file.
Status PromptStore::write_file(const PrefixMatch& match, std::span<const uint32_t> tokens,
                               uint32_t slot, const std::filesystem::path& file, Assembled& done) {
  // A write is several times as fast as stores into fresh pages of a mapping, but needs the memory
  // twice.
  const bool is_small = done.bytes <= kKeptBytes;
  std::shared_ptr<MappedFile> mapped;
  std::span<std::byte> memory;
  if (is_small) {
    if (memory_.size() < done.bytes) memory_.resize(done.bytes);
    memory = std::span(memory_).first(done.bytes);
  } else {
    KVKEEP_TRY_ASSIGN(mapped, MappedFile::create(file, done.bytes));
    memory = mapped->bytes();
  }
  KVKEEP_TRY_ASSIGN(const uint64_t whole, put_together(match, tokens, slot, memory, done));
  if (whole < done.tokens) {
    ::unlink(file.c_str());
    done.tokens = whole;
    done.bytes = 0;
    return Status();
  }
  return is_small ? write_new_file(file, memory) : Status();
}

Result<Assembled> PromptStore::write_whole(const PrefixMatch& match,
                                           const std::filesystem::path& file) {
  Assembled done;
  const Result<Tensor> whole = whole_->load(match);
  if (!whole.ok()) {
    done.end = whole.status().miss_reason();
    return done;
  }
  KVKEEP_TRY(write_new_file(file, whole->data.view));
  done.tokens = match.tokens;
  done.bytes = whole->data.view.size();
  return done;
}

Result<Assembled> PromptStore::assemble(const PrefixMatch& match, std::span<const uint32_t> tokens,
                                        uint32_t slot, const std::filesystem::path& file) {
  if (is_whole()) return write_whole(match, file);
  const std::lock_guard lock(assembling_);
  Assembled done;
  done.tokens = match.tokens;
  // The place of every row depends on how many tokens there are, so a block that is missing means
  // to begin again with fewer.
  while (done.tokens > 0 && done.bytes == 0) {
    done.bytes = llama::slot_file_bytes(identity_.layout, done.tokens);
    KVKEEP_TRY(write_file(match, tokens, slot, file, done));
  }
  return done;
}

Result<StoreReport> PromptStore::keep(const SavedSlot& slot, const std::string& salt) {
  const std::string both = salt_of(salt);
  if (is_whole()) {
    const std::span<const std::byte> bytes = slot.file->bytes();
    const Tensor file{DType::kU8, {bytes.size()}, SharedBytes{slot.file, bytes}};
    return whole_->keep(slot.tokens, file, both);
  }
  const PromptState state{.layers = slot.cut->layers, .layer_types = slot.cut->layer_types};
  return prefixes_->store({.tokens = slot.tokens, .salt = both}, state);
}

std::optional<Elsewhere> PromptStore::find_whole_elsewhere(std::span<const uint32_t> tokens) const {
  Result<std::vector<OtherWholeSlot>> found = whole_->find_elsewhere(tokens, settings_.dir);
  if (!found.ok() || found->empty()) return std::nullopt;
  OtherWholeSlot& nearest = found->front();
  std::string names;
  for (const FieldDifference& difference : nearest.where.differences) {
    names += (names.empty() ? "" : ", ") + difference.name;
  }
  return Elsewhere{std::move(nearest.where.differences),
                   "a slot with the first " + std::to_string(nearest.tokens) +
                       " tokens is stored whole, but not for the same " + names};
}

std::optional<Elsewhere> PromptStore::find_elsewhere(std::span<const uint32_t> tokens) const {
  if (is_whole()) return find_whole_elsewhere(tokens);
  PromptQuestion question;
  question.tokens = tokens;
  question.fields = identity_.fields;
  question.block_size = settings_.block_size;
  Result<PromptAnswer> answer = why_prompt(settings_.dir, question);
  if (!answer.ok() || answer->elsewhere.empty()) return std::nullopt;
  return Elsewhere{std::move(answer->elsewhere.front().differences), std::move(answer->text)};
}

Status PromptStore::close() { return cache_->close().status(); }

}  // namespace kvkeep::daemon
