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

// Keys of the full runs of a prompt: what the key of any length begins with.
Result<std::vector<BlockHash>> run_keys(const KeyChain& chain, std::span<const uint32_t> tokens) {
  std::vector<BlockHash> keys;
  std::optional<BlockHash> parent;
  for (size_t at = 0; at + kRun <= tokens.size(); at += kRun) {
    KVKEEP_TRY_ASSIGN(parent, chain.next(parent, tokens.subspan(at, kRun)));
    keys.push_back(*parent);
  }
  return keys;
}

// The key of the first `length` tokens.
Result<BlockHash> key_of(const KeyChain& chain, std::span<const BlockHash> runs,
                         std::span<const uint32_t> tokens, size_t length) {
  const size_t before = (length - 1) / kRun;
  std::optional<BlockHash> parent;
  if (before > 0) parent = runs[before - 1];
  return chain.next(parent, tokens.subspan(before * kRun, length - before * kRun));
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
  KVKEEP_TRY_ASSIGN(const std::vector<BlockHash> runs, run_keys(chain, tokens));
  PrefixMatch match;
  for (size_t length = tokens.empty() ? 0 : tokens.size() - 1; length > 0; --length) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, key_of(chain, runs, tokens, length));
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
  KVKEEP_TRY_ASSIGN(const std::vector<BlockHash> runs, run_keys(chain, tokens));
  KVKEEP_TRY_ASSIGN(const BlockHash key, key_of(chain, runs, tokens, tokens.size()));
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

}  // namespace kvkeep::daemon
