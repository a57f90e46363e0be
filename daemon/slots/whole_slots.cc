#include "daemon/slots/whole_slots.h"

#include <algorithm>
#include <optional>

namespace kvkeep::daemon {
namespace {

// The keys of all lengths of a prompt are made in runs of so many tokens, so that none needs the
// digest of all that is before it. Stored keys depend on it.
constexpr size_t kRun = 64;
constexpr const char* kLayerType = "LlamaSlot";
constexpr auto kLease = std::chrono::seconds(60);

// The keys of all lengths of a prompt, in one namespace.
class PromptKeys {
 public:
  // `root`: of the namespace. The other two must outlive it.
  static Result<PromptKeys> make(const KeyChain& chain, const BlockHash& root,
                                 std::span<const uint32_t> tokens) {
    PromptKeys keys(chain, tokens);
    keys.runs_ = {root};
    for (size_t at = 0; at + kRun <= tokens.size(); at += kRun) {
      KVKEEP_TRY_ASSIGN(BlockHash key, chain.next(keys.runs_.back(), tokens.subspan(at, kRun)));
      keys.runs_.push_back(std::move(key));
    }
    return keys;
  }

  // Of the first `length` tokens, at least one.
  Result<BlockHash> of(size_t length) const {
    const size_t before = (length - 1) / kRun;
    return chain_->next(runs_[before], tokens_.subspan(before * kRun, length - before * kRun));
  }

 private:
  PromptKeys(const KeyChain& chain, std::span<const uint32_t> tokens)
      : chain_(&chain), tokens_(tokens) {}

  const KeyChain* chain_;
  std::span<const uint32_t> tokens_;
  std::vector<BlockHash> runs_;  // What the key of any length begins with; first the root.
};

// How many tokens the longest slot has that the prompt goes on after; 0: there is none. The cache
// serves blocks of its own identity only, so those of others are looked for on disk.
Result<uint64_t> longest_on_disk(const TieredBlockCache& cache, const PromptKeys& keys,
                                 size_t tokens) {
  for (size_t length = tokens > 0 ? tokens - 1 : 0; length > 0; --length) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, keys.of(length));
    std::error_code ignored;
    if (std::filesystem::exists(cache.block_path(key), ignored)) return length;
  }
  return 0;
}

std::optional<std::string> value_of(const Namespace& fields, const std::string& name) {
  const auto at = fields.find(name);
  return at == fields.end() ? std::nullopt : std::optional<std::string>(at->second);
}

std::vector<FieldDifference> differences(const Namespace& stored, const Namespace& asked) {
  Namespace names = stored;
  names.insert(asked.begin(), asked.end());
  std::vector<FieldDifference> found;
  for (const auto& [name, ignored] : names) {
    FieldDifference one{name, value_of(stored, name), value_of(asked, name)};
    if (one.stored != one.asked) found.push_back(std::move(one));
  }
  return found;
}

// Keeps a lease for as long as any copy of a match.
std::shared_ptr<const void> hold(Lease lease) { return std::make_shared<Lease>(std::move(lease)); }

}  // namespace

Result<WholeSlots> WholeSlots::open(TieredBlockCache& cache, Namespace fields,
                                    std::string model_name) {
  WholeSlots slots(cache, std::move(fields), std::move(model_name));
  KVKEEP_TRY_ASSIGN(const KeyChain chain, slots.chain(""));
  cache.note_namespace(*chain.root(), slots.fields_);
  return slots;
}

Result<KeyChain> WholeSlots::chain(const std::string& salt) const {
  Namespace fields = fields_;
  if (!salt.empty()) fields["salt"] = salt;
  return KeyChain::open(fields);
}

Result<PrefixMatch> WholeSlots::match(std::span<const uint32_t> tokens, const std::string& salt) {
  KVKEEP_TRY_ASSIGN(const KeyChain chain, this->chain(salt));
  KVKEEP_TRY_ASSIGN(const PromptKeys keys, PromptKeys::make(chain, *chain.root(), tokens));
  PrefixMatch match;
  for (size_t length = tokens.empty() ? 0 : tokens.size() - 1; length > 0; --length) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, keys.of(length));
    if (!cache_->has_block(key)) continue;
    Result<Lease> lease = cache_->lease(std::span(&key, 1), kLease, "kvkeep llama");
    if (!lease.ok() || lease->size() == 0) continue;
    match.tokens = length;
    match.blocks = {{key, static_cast<uint32_t>(length), lease->blocks()[0].source}};
    KVKEEP_TRY_ASSIGN(const TokenDigest digest, token_digest(tokens.first(length)));
    match.digests = {digest};
    match.table.num_tokens = length;
    match.table.hold = hold(*std::move(lease));
    match.text = std::to_string(length) + " tokens of " + std::to_string(tokens.size()) +
                 " in a slot that is stored whole";
    return match;
  }
  match.end = MissReason::kAbsent;
  match.text = "no slot is stored whole that this prompt begins with and goes on after";
  return match;
}

Result<Tensor> WholeSlots::load(const PrefixMatch& match) {
  LoadOptions how;
  how.tokens = match.digests;
  BatchResult loaded =
      cache_->load_blocks(std::span(&match.blocks[0].key, 1), BatchMode::kPrefix, how);
  if (loaded.empty()) return Status(Code::kNotFound, MissReason::kAbsent, "the slot is gone");
  if (!loaded[0].ok()) return loaded[0].status();
  const LoadedBlock& block = *loaded[0];
  const auto* state = block.layers.size() == 1 ? std::get_if<NState>(&block.layers[0]) : nullptr;
  const Tensor* file = state != nullptr && !state->elements.empty()
                           ? std::get_if<Tensor>(&state->elements[0].v)
                           : nullptr;
  if (file != nullptr && file->dtype == DType::kU8) return *file;
  return Status(Code::kFailedPrecondition, MissReason::kLayout, "the block holds no slot");
}

Result<StoreReport> WholeSlots::keep(std::span<const uint32_t> tokens, const Tensor& file,
                                     const std::string& salt) {
  StoreReport report;
  if (tokens.empty()) return report;
  KVKEEP_TRY_ASSIGN(const KeyChain chain, this->chain(salt));
  KVKEEP_TRY_ASSIGN(const PromptKeys keys, PromptKeys::make(chain, *chain.root(), tokens));
  KVKEEP_TRY_ASSIGN(const BlockHash key, keys.of(tokens.size()));
  BlockInput block;
  NState state;
  state.elements.push_back(Element{file});
  block.layers.push_back(LayerState(std::move(state)));
  block.model_name = model_name_;
  block.token_count = static_cast<uint32_t>(tokens.size());
  block.layer_types = std::vector<std::string>{kLayerType};
  KVKEEP_TRY_ASSIGN(block.tokens, token_digest(tokens));
  const Result<SaveOutcome> saved = cache_->save_block(key, std::move(block));
  if (!saved.ok()) {
    report.refused = saved.status();
    return report;
  }
  report.tokens = tokens.size();
  ++(*saved == SaveOutcome::kAlreadyPresent ? report.present_blocks : report.stored_blocks);
  return report;
}

Result<std::vector<OtherWholeSlot>> WholeSlots::find_elsewhere(
    std::span<const uint32_t> tokens, const std::filesystem::path& store) const {
  KVKEEP_TRY_ASSIGN(const KeyChain chain, this->chain(""));
  KVKEEP_TRY_ASSIGN(std::vector<NamespaceInfo> all, read_namespaces(store));
  std::vector<OtherWholeSlot> found;
  for (NamespaceInfo& info : all) {
    const Result<BlockHash> root = BlockHash::from_hex(info.digest);
    if (!info.is_root || !root.ok() || *root == *chain.root()) continue;
    KVKEEP_TRY_ASSIGN(const PromptKeys keys, PromptKeys::make(chain, *root, tokens));
    KVKEEP_TRY_ASSIGN(const uint64_t length, longest_on_disk(*cache_, keys, tokens.size()));
    if (length == 0) continue;
    std::vector<FieldDifference> how = differences(info.fields, fields_);
    found.push_back({length, {std::move(info), std::move(how)}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const OtherWholeSlot& a, const OtherWholeSlot& b) {
                     return a.where.differences.size() < b.where.differences.size();
                   });
  return found;
}

}  // namespace kvkeep::daemon
