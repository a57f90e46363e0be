#include "tier/block_saver.h"

#include "base/bytes.h"
#include "base/guarded.h"
#include "codec/block_codec.h"
#include "kvkeep/size_string.h"
#include "tier/compatibility.h"
#include "tier/inline_write.h"
#include "tier/removal.h"
#include "tier/write_promise.h"

namespace kvkeep {
namespace {

// A durable block that was seen within this time is present without a look at the disk (RUL-39).
constexpr Duration kTrustFile = std::chrono::seconds(60);

Status refuse(Code code, Refusal reason, std::string message) {
  return Status(code, reason, std::move(message));
}

std::string contradiction_text(const Expectation& expected, const Layout& layout, Refusal why) {
  if (why == Refusal::kRefusedModel) {
    return "model_name \"" + layout.model_name + "\": this cache is for \"" + expected.model_name +
           "\"";
  }
  if (why == Refusal::kRefusedBits)
    return "TurboQuant bit depth differs from the one this cache is for";
  return "layers differ from those this cache is for (num_layers or layer_types)";
}

Status misfit() {
  return refuse(Code::kFailedPrecondition, Refusal::kRefusedLayout,
                "what this cache is for has changed during the save");
}

// What the caller left out is what the cache is for, so that the block is still served after a
// restart.
Status complete(BlockInput& input, const Expectation& expected) {
  if (input.model_name.empty()) input.model_name = expected.model_name;
  const bool has_types = input.layer_types && !input.layer_types->empty();
  if (has_types || !expected.layer_types) return {};
  if (expected.layer_types->size() != input.layers.size()) {
    return refuse(Code::kFailedPrecondition, Refusal::kRefusedLayout,
                  "layers: " + std::to_string(input.layers.size()) + "; this cache is for " +
                      std::to_string(expected.layer_types->size()));
  }
  input.layer_types = expected.layer_types;
  return {};
}

}  // namespace

Result<SaveOutcome> BlockSaver::save(const BlockHash& hash, BlockInput input) {
  try {
    return look_and_store(hash, std::move(input));
  } catch (const std::bad_alloc&) {
    return count(out_of_memory(Asked::kSave));
  }
}

Result<SaveOutcome> BlockSaver::look_and_store(const BlockHash& hash, BlockInput input) {
  adopt_from(state_, input);
  const ExpectationPtr expected = state_.expectation.get();
  if (is_present(hash)) return save_present(hash, input);
  if (Status s = can_be_reached(state_, input.parent); !s.ok()) {
    state_.departed.remember(hash, MissReason::kEvicted);  // So that the next one knows.
    return count(std::move(s));
  }
  const SparedParent spared(state_.index, input.parent);
  const bool hot = keeps_hot(input);
  if (state_.has_disk() && input.residency == Residency::kAny)
    state_.hot.want_files_up_from(input.parent);
  if (Status s = complete(input, *expected); !s.ok()) return count(std::move(s));
  Result<ImagePtr> image = encode(hash, input, *expected);
  if (!image.ok()) return count(image.status());
  LayoutPtr layout = state_.layouts.intern((*image)->header());
  if (const auto why = contradiction(*expected, *layout)) {
    return count(
        refuse(Code::kFailedPrecondition, *why, contradiction_text(*expected, *layout, *why)));
  }
  Result<SaveOutcome> outcome = hot ? store_hot(hash, *image, layout, *expected, input.residency)
                                    : accept(hash, *std::move(image), std::move(layout), *expected);
  if (!outcome.ok()) return count(outcome.status());
  return outcome;
}

bool BlockSaver::keeps_hot(const BlockInput& input) const {
  if (!state_.has_disk() || input.residency == Residency::kHotOnly) return true;
  return state_.hot.enabled() && state_.options.write_back && input.write_back;
}

Result<SaveOutcome> BlockSaver::count_present() {
  state_.stats.add({{&CacheStats::saves_present}, {&CacheStats::hits}});
  return SaveOutcome::kAlreadyPresent;
}

// A save that asks for the disk sends a block there that is only in RAM so far (SAVE-05).
Result<SaveOutcome> BlockSaver::save_present(const BlockHash& hash, const BlockInput& input) {
  if (state_.has_disk() && input.residency == Residency::kAny) state_.hot.want_file(hash);
  if (!keeps_hot(input) && !state_.hot.write_now(hash)) return count(no_ticket());
  return count_present();
}

Result<SaveOutcome> BlockSaver::store_hot(const BlockHash& hash, const ImagePtr& image,
                                          const LayoutPtr& layout, const Expectation& expected,
                                          Residency residency) {
  const bool for_disk = state_.has_disk() && residency == Residency::kAny;
  if (for_disk) KVKEEP_TRY(fits_the_disk(*image));
  switch (state_.hot.keep_new(hash, image, layout, expected, residency)) {
    case HotTier::Kept::kPresent:
      return count_present();
    case HotTier::Kept::kYes:
      state_.stats.add(&CacheStats::saves);
      state_.emit(EventKind::kSaveStored, &hash, image->ram_bytes());
      return SaveOutcome::kStored;
    case HotTier::Kept::kMisfit:
      return misfit();
    case HotTier::Kept::kNoRoom:
      break;
  }
  if (for_disk) return accept(hash, image, layout, expected);
  return no_room_in_ram(*image);
}

Status BlockSaver::no_room_in_ram(const Image& image) const {
  const bool too_large = image.ram_bytes() > state_.hot.max_bytes();
  return refuse(Code::kResourceExhausted, too_large ? Refusal::kTooLarge : Refusal::kNoSpace,
                "the block takes " + format_bytes(image.ram_bytes()) +
                    " of RAM and may not go to disk; hot_max_bytes is " +
                    format_bytes(state_.hot.max_bytes()));
}

Status BlockSaver::fits_the_disk(const Image& image) const {
  const uint64_t charge = round_up(image.file_bytes(), state_.directory->block_bytes());
  if (charge <= state_.account->largest_block()) return {};
  return never_fits(state_, charge);
}

BlockSaver::Presence BlockSaver::look(const BlockHash& hash, uint64_t& generation) {
  LockedEntry locked(state_.index, hash);
  Entry* entry = locked.get();
  if (entry == nullptr || !entry->servable()) return Presence::kAbsent;
  generation = entry->file.generation;
  const bool in_memory = entry->pending != nullptr || entry->hot != nullptr;
  const bool sure = in_memory || state_.clock().mono() - entry->file.verified < kTrustFile;
  if (!sure) return Presence::kUnsure;
  locked.touch(state_.clock().wall());
  entry->file.used = true;
  if (entry->hot != nullptr) state_.hot.touch(hash);
  return Presence::kPresent;
}

bool BlockSaver::is_present(const BlockHash& hash) {
  uint64_t generation = 0;
  Presence presence = look(hash, generation);
  if (presence != Presence::kUnsure) return presence == Presence::kPresent;
  const Result<FileStat> stat = state_.directory->stat(hash);
  if (stat.ok()) {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    const bool same = entry != nullptr && entry->file.generation == generation &&
                      entry->file.file_bytes == stat->size && stat->kind == FileKind::kFile;
    if (same) entry->file.verified = state_.clock().mono();
  } else if (stat.status().code() == Code::kNotFound) {
    forget_missing(state_, hash, generation);
  }
  return look(hash, generation) == Presence::kPresent;
}

Result<ImagePtr> BlockSaver::encode(const BlockHash& hash, const BlockInput& input,
                                    const Expectation& expected) const {
  EncodeContext context;
  context.created_at = state_.clock().wall();
  context.block_size = expected.block_size;
  context.turboquant_bits = expected.turboquant_bits;
  context.identity = expected.identity;
  context.profile = state_.options.profile;
  Result<ImagePtr> image = encode_block(hash, input, context, *state_.pool);
  if (image.ok() || image.status().refusal()) return image;
  const Code code = image.status().code();
  if (code == Code::kResourceExhausted)
    return refuse(code, Refusal::kRefusedNoMemory, image.status().message());
  if (code == Code::kUnimplemented)
    return refuse(code, Refusal::kUnsupported, image.status().message());
  return image;
}

Result<SaveOutcome> BlockSaver::accept(const BlockHash& hash, ImagePtr image, LayoutPtr layout,
                                       const Expectation& expected) {
  KVKEEP_TRY(fits_the_disk(*image));
  const uint64_t charge = round_up(image->file_bytes(), state_.directory->block_bytes());
  std::optional<Ticket> ticket = state_.queue.take_ticket(
      image->ram_bytes(), state_.options.queue_wait, WriteQueue::Entrance::kSaver);
  const bool inline_write = !ticket;
  if (inline_write) {
    KVKEEP_TRY_ASSIGN(ticket, take_inline_ticket(state_, image->ram_bytes()));
  }
  // Reserved first, so that savers who come together make room for all of them.
  WritePromise promise(state_, *ticket, charge);
  reclaimer_.make_room(0, state_.options.max_inline_unlinks_per_save);
  auto pending = std::make_unique<PendingBlock>();
  *pending = {ticket->generation, PendingState::kQueued, charge, std::move(image),
              std::move(layout)};
  const Published published = publish(hash, std::move(pending), expected);
  if (published == Published::kMisfit) return misfit();
  if (published == Published::kPresent) return count_present();
  promise.keep();
  if (inline_write && published == Published::kQueued) return write_inline(state_, {hash, *ticket});
  state_.stats.add(&CacheStats::saves);
  if (published == Published::kQueued) state_.enqueue({hash, *ticket});
  state_.emit(EventKind::kSaveQueued, &hash, charge);
  return SaveOutcome::kQueued;
}

Status BlockSaver::no_ticket() const {
  if (state_.gate.is_closed()) {
    return refuse(Code::kFailedPrecondition, Refusal::kRefusedClosed, "the cache is closing");
  }
  return refuse(Code::kResourceExhausted, Refusal::kBusy,
                "the write queue stayed full: the disk is slower than the saves");
}

BlockSaver::Published BlockSaver::publish(const BlockHash& hash,
                                          std::unique_ptr<PendingBlock> pending,
                                          const Expectation& expected) {
  state_.departed.forget(hash);
  const double now = state_.clock().wall();
  LockedEntry locked(state_.index, hash);
  if (!still_fits(state_, *pending->layout, expected)) return Published::kMisfit;
  Entry& entry = locked.get_or_add(now);
  locked.touch(now);
  if (entry.servable()) return Published::kPresent;
  const bool parked = entry.file.state == FileState::kRemoving;
  if (parked) pending->state = PendingState::kParked;
  locked.set_parent(pending->image->header().info.parent);
  entry.pending = std::move(pending);
  return parked ? Published::kParked : Published::kQueued;
}

Status BlockSaver::count(Status refused) {
  const Code code = refused.code();
  const auto reason = refused.refusal();
  const bool contradicts = reason == Refusal::kRefusedModel || reason == Refusal::kRefusedLayout ||
                           reason == Refusal::kRefusedBits;
  if (reason) state_.stats.add_refusal(*reason);
  if (contradicts) state_.stats.add(&CacheStats::save_rejected_incompatible);
  if (code == Code::kUnimplemented || code == Code::kInvalidArgument)
    state_.stats.add(&CacheStats::errors);
  return refused;
}

}  // namespace kvkeep
