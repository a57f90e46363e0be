// PrefixCache::store(): cuts the state of a prompt into blocks and saves those that are missing.
#include <algorithm>
#include <string>

#include "kvkeep/layer_cut.h"
#include "prefix/prefix_state.h"

namespace kvkeep {
namespace {

constexpr size_t kNotedRootsMax = 4096;  // Beyond them, some are told to the cache again.

Status wrong(const std::string& what) { return Status(Code::kInvalidArgument, what); }

bool is_rotating(std::string_view type) { return type.find("Rotating") != std::string_view::npos; }

// One call of store().
class Storing {
 public:
  Storing(PrefixState& state, const Prompt& prompt, const PromptState& given,
          std::span<const Snapshot> snapshots)
      : state_(state), prompt_(prompt), given_(given), snapshots_(snapshots) {
    for (size_t i = 0; i < given.layers.size() && i < given.layer_types.size(); ++i) {
      cuttable_.push_back(is_cuttable(given.layer_types[i], given.layers[i]));
    }
  }

  Status check() const;
  Result<StoreReport> run(const KeyChain& chain);

 private:
  uint64_t all() const { return prompt_.tokens.size(); }
  Status check_layers(const std::string& where, size_t layers,
                      const std::optional<std::vector<MetaState>>& meta_states) const;
  Result<std::vector<PromptBlock>> blocks(const KeyChain& chain) const;
  const Snapshot* snapshot_at(uint64_t tokens) const;
  // With the state of every layer.
  bool can_store_whole(const PromptBlock& block) const {
    const bool ends_with_state = block.end == all() || snapshot_at(block.end) != nullptr;
    return ends_with_state && block.begin >= given_.first_token;
  }
  bool is_present(const PromptBlock& block);
  bool lacks_state(const PromptBlock& block);
  Result<BlockInput> input_of(const PromptBlock& block) const;
  Status store(const PromptBlock& block, StoreReport& report);
  bool has_windows() const;
  void supersede(const std::vector<PromptBlock>& blocks, size_t first_new);
  void strip(const BlockHash& key);
  void drop_old_tails(const KeyChain& chain, const std::vector<PromptBlock>& blocks);
  std::vector<BlockHash> earlier_tails(const KeyChain& chain, const PromptBlock& block) const;

  PrefixState& state_;
  const Prompt& prompt_;
  const PromptState& given_;
  const std::span<const Snapshot> snapshots_;
  std::vector<bool> cuttable_;
};

Status Storing::check_layers(const std::string& where, size_t layers,
                             const std::optional<std::vector<MetaState>>& meta_states) const {
  const size_t expected = given_.layer_types.size();
  if (layers != expected) {
    return wrong(where + "layers: " + std::to_string(layers) + ", but layer_types names " +
                 std::to_string(expected));
  }
  if (meta_states && meta_states->size() != expected) {
    return wrong(where + "meta_states: " + std::to_string(meta_states->size()) + " for " +
                 std::to_string(expected) + " layers");
  }
  return {};
}

Status Storing::check() const {
  KVKEEP_TRY(check_layers("", given_.layers.size(), given_.meta_states));
  if (given_.first_token > all()) return wrong("first_token: beyond the end of the prompt");
  for (size_t i = 0; i < given_.layers.size(); ++i) {
    if (!cuttable_[i]) continue;
    const uint64_t held = tokens_in(given_.layers[i]).value_or(0);
    if (held == all() - given_.first_token) continue;
    return wrong("layers[" + std::to_string(i) + "]: holds " + std::to_string(held) +
                 " tokens; the prompt has " + std::to_string(all() - given_.first_token) +
                 " from first_token on");
  }
  for (size_t i = 0; i < snapshots_.size(); ++i) {
    const std::string where = "snapshots[" + std::to_string(i) + "].";
    const uint64_t tokens = snapshots_[i].tokens;
    KVKEEP_TRY(check_layers(where, snapshots_[i].layers.size(), snapshots_[i].meta_states));
    if (tokens > all() || (tokens % state_.keys->block_size() != 0 && tokens != all())) {
      return wrong(where + "tokens: " + std::to_string(tokens) +
                   " is neither the end of a block nor of the prompt");
    }
  }
  return {};
}

Result<std::vector<PromptBlock>> Storing::blocks(const KeyChain& chain) const {
  KVKEEP_TRY_ASSIGN(std::vector<PromptBlock> blocks,
                    state_.keys->full_blocks(chain, prompt_, all()));
  const uint64_t begin = blocks.empty() ? 0 : blocks.back().end;
  if (begin == all() || !state_.keeps_tails()) return blocks;
  std::optional<BlockHash> parent;
  if (!blocks.empty()) parent = blocks.back().key;
  KVKEEP_TRY_ASSIGN(PromptBlock tail, state_.keys->block(chain, prompt_, parent, begin, all()));
  blocks.push_back(std::move(tail));
  return blocks;
}

const Snapshot* Storing::snapshot_at(uint64_t tokens) const {
  const auto found = std::find_if(snapshots_.begin(), snapshots_.end(),
                                  [&](const Snapshot& one) { return one.tokens == tokens; });
  return found == snapshots_.end() ? nullptr : &*found;
}

// A block without a state that this prompt can give it is stored again.
bool Storing::is_present(const PromptBlock& block) {
  if (!state_.cache->has_block(block.key)) return false;
  if (!can_store_whole(block) || !lacks_state(block)) return true;
  state_.cache->forget_block(block.key);
  return false;
}

bool Storing::lacks_state(const PromptBlock& block) {
  if (std::find(cuttable_.begin(), cuttable_.end(), false) == cuttable_.end()) return false;
  const Result<LoadedBlock> stored = state_.cache->load_block_with_info(block.key, false);
  return stored.ok() && !holds_whole_state(*stored);
}

Result<BlockInput> Storing::input_of(const PromptBlock& block) const {
  const Snapshot* snapshot = block.end == all() ? nullptr : snapshot_at(block.end);
  BlockInput input;
  input.token_count = block.tokens();
  input.layer_types = given_.layer_types;
  input.meta_states = given_.meta_states;
  if (snapshot != nullptr && snapshot->meta_states) input.meta_states = snapshot->meta_states;
  input.parent = block.parent;
  input.tokens = block.digest;
  const bool tail = block.tokens() < state_.keys->block_size();
  if (tail && state_.options.partial_tails == PartialTails::kHotOnly)
    input.residency = Residency::kHotOnly;
  for (size_t i = 0; i < given_.layers.size(); ++i) {
    if (cuttable_[i]) {
      KVKEEP_TRY_ASSIGN(LayerState cut,
                        cut_layer(given_.layers[i], block.begin - given_.first_token,
                                  block.end - given_.first_token));
      input.layers.push_back(std::move(cut));
    } else if (block.end == all()) {
      input.layers.push_back(given_.layers[i]);
    } else {
      input.layers.push_back(snapshot != nullptr ? snapshot->layers[i] : placeholder_layer());
    }
  }
  return input;
}

Status Storing::store(const PromptBlock& block, StoreReport& report) {
  if (is_present(block)) {
    ++report.present_blocks;
    return {};
  }
  if (block.begin < given_.first_token) {
    return Status(Code::kFailedPrecondition,
                  "first_token: block " + block.key.short_hex() +
                      " before it is not stored any more; give the state of all tokens");
  }
  KVKEEP_TRY_ASSIGN(BlockInput input, input_of(block));
  KVKEEP_TRY_ASSIGN(const SaveOutcome outcome,
                    state_.cache->save_block(block.key, std::move(input)));
  ++(outcome == SaveOutcome::kAlreadyPresent ? report.present_blocks : report.stored_blocks);
  return {};
}

Result<StoreReport> Storing::run(const KeyChain& chain) {
  KVKEEP_TRY_ASSIGN(const std::vector<PromptBlock> wanted, blocks(chain));
  StoreReport report;
  std::optional<size_t> first_new;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const uint64_t stored_before = report.stored_blocks;
    if (Status s = store(wanted[i], report); !s.ok()) {
      report.refused = std::move(s);
      return report;
    }
    if (report.stored_blocks > stored_before && !first_new) first_new = i;
    report.tokens = wanted[i].end;
    if (wanted[i].tokens() < state_.keys->block_size()) {
      state_.tails.add(tail_parent(chain, wanted[i].parent), wanted[i].tokens());
    }
  }
  if (first_new && has_windows()) {
    supersede(wanted, *first_new);
    drop_old_tails(chain, wanted);
  }
  return report;
}

bool Storing::has_windows() const {
  const auto& types = given_.layer_types;
  return std::any_of(types.begin(), types.end(), is_rotating);
}

// Of the prompts that end with a window's whole state, the last two of a conversation keep it.
void Storing::supersede(const std::vector<PromptBlock>& blocks, size_t first_new) {
  if (first_new == 0) return;
  const auto superseded = state_.lineage.extend(blocks[first_new - 1].key, blocks.back().key);
  if (superseded) strip(*superseded);
}

// The same where those ends were partial blocks, which nothing else needs.
void Storing::drop_old_tails(const KeyChain& chain, const std::vector<PromptBlock>& blocks) {
  std::vector<BlockHash> ends;
  for (const PromptBlock& block : blocks) {
    for (BlockHash& tail : earlier_tails(chain, block)) ends.push_back(std::move(tail));
  }
  if (ends.empty()) return;
  ends.pop_back();  // The one before this prompt's own end.
  for (const BlockHash& tail : ends) {
    const Result<bool> dropped = state_.cache->delete_block(tail);  // Unless it is leased.
    if (dropped.ok() && *dropped) state_.count({{&PrefixStats::superseded_blocks, 1}});
  }
}

// Partial blocks that began where this one does and hold the beginning of its tokens, the shortest
// first.
std::vector<BlockHash> Storing::earlier_tails(const KeyChain& chain,
                                              const PromptBlock& block) const {
  std::vector<BlockHash> found;
  auto lengths = state_.tails.lengths(tail_parent(chain, block.parent));
  if (!lengths) return found;
  std::reverse(lengths->begin(), lengths->end());
  for (const uint32_t tokens : *lengths) {
    if (tokens >= block.tokens()) break;
    const auto tail =
        state_.keys->block(chain, prompt_, block.parent, block.begin, block.begin + tokens);
    if (tail.ok() && state_.cache->has_block(tail->key)) found.push_back(tail->key);
  }
  return found;
}

void Storing::strip(const BlockHash& key) {
  Result<LoadedBlock> block = state_.cache->load_block_with_info(key, false);
  if (!block.ok()) return;
  bool changed = false;
  for (size_t i = 0; i < block->layers.size(); ++i) {
    if (!is_rotating(type_of_layer(*block, i)) || is_placeholder(block->layers[i])) continue;
    block->layers[i] = placeholder_layer();
    changed = true;
  }
  if (!changed || !state_.cache->forget_block(key)) return;
  BlockInput input{std::move(block->layers),     block->info.token_count, block->info.model_name,
                   block->info.layer_types,      block->info.meta_states, block->info.parent,
                   std::move(block->info.tokens)};
  // Refused, the block is a miss: as if it had been evicted.
  if (state_.cache->save_block(key, std::move(input)).ok())
    state_.count({{&PrefixStats::superseded_blocks, 1}});
}

}  // namespace

void PrefixState::note_namespace(const KeyChain& chain, const Prompt& prompt) {
  if (!chain.root()) return;
  {
    MutexLock lock(mu);
    if (noted_roots.count(*chain.root()) == 1) return;
    if (noted_roots.size() >= kNotedRootsMax) noted_roots.clear();
    noted_roots.insert(*chain.root());
  }
  cache->note_namespace(*chain.root(), keys->shown_fields(prompt));
}

Result<StoreReport> PrefixState::store(const Prompt& prompt, const PromptState& given,
                                       std::span<const Snapshot> snapshots) {
  Storing storing(*this, prompt, given, snapshots);
  KVKEEP_TRY(storing.check());
  KVKEEP_TRY_ASSIGN(const KeyChain chain, keys->chain_of(prompt));
  KVKEEP_TRY_ASSIGN(StoreReport report, storing.run(chain));
  if (report.tokens > 0) note_namespace(chain, prompt);
  return report;
}

}  // namespace kvkeep
