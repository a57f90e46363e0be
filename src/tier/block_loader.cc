#include "tier/block_loader.h"

#include "base/bytes.h"
#include "base/guarded.h"
#include "codec/block_codec.h"
#include "disk/store_layout.h"
#include "tier/removal.h"

namespace kvkeep {
namespace {

Status miss(MissReason why, const BlockHash& hash) {
  return Status(Code::kNotFound, why,
                "block " + hash.short_hex() + ": " + std::string(kvkeep::explain(why)));
}

Status damaged(const BlockHash& hash, const std::string& what) {
  return Status(Code::kDataLoss, MissReason::kDamaged, "block " + hash.short_hex() + ": " + what);
}

Status no_memory(const Status& why) {
  return Status(Code::kResourceExhausted, MissReason::kNoMemory, why.message());
}

// Why a block without an image in memory is not read.
MissReason why_not_served(const BlockFile& file) {
  switch (file.state) {
    case FileState::kRemoving:
      return MissReason::kEvicted;
    case FileState::kDurable:
      return MissReason::kSuspect;
    default:
      return file.why;
  }
}

std::string_view place_text(Source source) {
  switch (source) {
    case Source::kHot:
      return "in the hot tier";
    case Source::kPending:
      return "waiting to be written";
    case Source::kDisk:
      return "on disk";
  }
  return "on disk";
}

Stats::Counter hit_counter(Source source) {
  switch (source) {
    case Source::kHot:
      return &CacheStats::load_hits_hot;
    case Source::kPending:
      return &CacheStats::load_hits_pending;
    case Source::kDisk:
      return &CacheStats::load_hits_disk;
  }
  return &CacheStats::load_hits_disk;
}

}  // namespace

BatchResult BlockLoader::load(std::span<const BlockHash> keys, BatchMode mode,
                              const LoadOptions& how) {
  try {
    return find_read_deliver(keys, mode, how);
  } catch (const std::bad_alloc&) {
    return all_lost(keys, mode);
  }
}

// Memory was short before the first was delivered.
BatchResult BlockLoader::all_lost(std::span<const BlockHash> keys, BatchMode mode) {
  const size_t count = mode == BatchMode::kPrefix ? std::min<size_t>(keys.size(), 1) : keys.size();
  BatchResult results(count, out_of_memory(Asked::kLoad));
  for (const auto& result : results) count_miss(result.status());
  return results;
}

BatchResult BlockLoader::find_read_deliver(std::span<const BlockHash> keys, BatchMode mode,
                                           const LoadOptions& how) {
  const Call call{state_.clock().mono(), state_.expectation.get()};
  std::vector<Found> found = find_all(keys, mode);
  read(keys, found, how.promote, *call.expected);
  BatchResult results;
  results.reserve(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const TokenDigest* tokens = i < how.tokens.size() ? &how.tokens[i] : nullptr;
    results.push_back(deliver(keys[i], found[i], call, tokens));
    found[i].image = out_of_memory(Asked::kLoad);  // The caller's views keep the image now.
    if (mode == BatchMode::kPrefix && !results.back().ok()) break;
  }
  return results;
}

bool BlockLoader::warm(const BlockHash& hash) {
  const ExpectationPtr expected = state_.expectation.get();
  std::vector<Found> found = find_all({&hash, 1}, BatchMode::kEach);
  if (!found.front().on_disk()) return false;
  read({&hash, 1}, found, true, *expected);
  if (!found.front().image.ok()) return false;
  touch(hash, Source::kHot);
  LockedEntry locked(state_.index, hash);
  return locked.get() != nullptr && locked.get()->hot != nullptr;
}

Explanation BlockLoader::explain(const BlockHash& hash) {
  const Found found = find(hash);
  if (found.on_disk() || found.image.ok()) {
    return {found.source,
            {},
            "block " + hash.short_hex() + ": " + std::string(place_text(found.source))};
  }
  return {{}, found.image.status().miss_reason(), found.image.status().message()};
}

BlockLoader::Found BlockLoader::find(const BlockHash& hash) {
  Found found;
  LockedEntry locked(state_.index, hash);
  const Entry* entry = locked.get();
  if (entry == nullptr) {
    found.image = miss(state_.departed.why(hash), hash);
  } else if (entry->hot != nullptr) {
    found.image = entry->hot->image;
    found.source = Source::kHot;
  } else if (entry->pending != nullptr) {
    found.image = entry->pending->image;
    found.source = Source::kPending;
  } else if (!entry->loadable(state_.clock().mono())) {
    found.image = miss(why_not_served(entry->file), hash);
  } else {
    found.generation = entry->file.generation;
    found.file_bytes = entry->file.file_bytes;
    found.layout = entry->file.layout;
  }
  return found;
}

// Up to the first certain miss where only the prefix counts.
std::vector<BlockLoader::Found> BlockLoader::find_all(std::span<const BlockHash> keys,
                                                      BatchMode mode) {
  std::vector<Found> all;
  for (const BlockHash& hash : keys) {
    all.push_back(find(hash));
    if (all.back().on_disk()) prepare(hash, all.back());
    const bool certain_miss = !all.back().image.ok() && !all.back().seat;
    if (certain_miss && mode == BatchMode::kPrefix) break;
  }
  return all;
}

// A block that must be read gets a seat, and a buffer if nobody else is reading it.
void BlockLoader::prepare(const BlockHash& hash, Found& found) {
  found.seat = flights_.take_seat(hash, found.generation);
  if (!found.seat.leads()) return;
  Result<PooledBuffer> buffer = state_.pool->allocate(round_up(found.file_bytes, kIoAlign));
  if (buffer.ok()) {
    found.buffer = *std::move(buffer);
  } else {
    found.image = no_memory(buffer.status());
    found.seat.land(found.image);
  }
}

void BlockLoader::read(std::span<const BlockHash> keys, std::vector<Found>& found, bool promote,
                       const Expectation& seen) {
  std::vector<ReadRequest> requests;
  std::vector<size_t> owners;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].buffer.data() == nullptr) continue;
    requests.push_back({block_path(keys[i]), found[i].buffer.span()});
    owners.push_back(i);
  }
  if (!requests.empty()) {
    state_.engine->read_files(requests, [&](size_t index, const ReadOutcome& outcome) {
      const size_t i = owners[index];
      Found& one = found[i];
      one.image = verify(keys[i], one, outcome);
      const bool keep = one.image.ok() && promote && state_.expectation.is_current(seen);
      if (keep) state_.hot.promote(keys[i], *one.image, one.generation);
      one.seat.land(one.image);
    });
  }
  for (Found& one : found) {
    if (one.seat) one.image = one.seat.wait();
  }
}

// Also acts on what was found: damaged files are moved aside, vanished ones forgotten.
Result<ImagePtr> BlockLoader::verify(const BlockHash& hash, Found& found,
                                     const ReadOutcome& outcome) {
  Result<ImagePtr> image = check(hash, found, outcome);
  if (image.ok()) return image;
  switch (image.status().miss_reason().value_or(MissReason::kUnreadable)) {
    case MissReason::kDamaged:
      quarantine_block(state_, hash, found.generation);
      break;
    case MissReason::kAbsent:
      forget_missing(state_, hash, found.generation);
      break;
    case MissReason::kVersion:
    case MissReason::kUndigested:
      make_incompatible(state_, hash, found.generation, *image.status().miss_reason());
      break;
    case MissReason::kUnreadable:
      make_suspect(state_, hash, found.generation);
      break;
    default:
      break;
  }
  return image;
}

Result<ImagePtr> BlockLoader::check(const BlockHash& hash, Found& found,
                                    const ReadOutcome& outcome) {
  if (outcome.status.code() == Code::kNotFound) return miss(MissReason::kAbsent, hash);
  if (!outcome.status.ok()) {
    return Status(Code::kUnavailable, MissReason::kUnreadable, outcome.status.message());
  }
  if (outcome.stat.size != found.file_bytes || outcome.bytes_read != found.file_bytes) {
    return damaged(hash, "the file has " + std::to_string(outcome.bytes_read) +
                             " bytes instead of " + std::to_string(found.file_bytes));
  }
  const DecodeContext context{hash, state_.options.require_digest};
  Result<ImagePtr> image = decode_image(std::move(found.buffer), found.file_bytes, context);
  if (image.status().code() == Code::kResourceExhausted) return no_memory(image.status());
  if (!image.ok()) return image;
  LayoutPtr layout = state_.layouts.intern((*image)->header());
  if (layout == found.layout) return image;
  // Whole and of this key, but not what the index was told: another program replaced the file
  // (LOAD-16).
  const auto why =
      incompatibility(*state_.expectation.get(), *layout).value_or(MissReason::kLayout);
  make_incompatible(state_, hash, found.generation, why, std::move(layout));
  return miss(why, hash);
}

// RUL-48: what fitted when the load began may not fit any more.
Result<LoadedBlock> BlockLoader::deliver(const BlockHash& hash, const Found& found,
                                         const Call& call, const TokenDigest* tokens) {
  Result<LoadedBlock> block =
      guarded(Asked::kLoad, [&] { return lend(hash, found, call, tokens); });
  if (!block.ok()) {
    count_miss(block.status());
    return block;
  }
  touch(hash, found.source);
  count_hit(**found.image, found.source, call.began_at);
  return block;
}

Result<LoadedBlock> BlockLoader::lend(const BlockHash& hash, const Found& found, const Call& call,
                                      const TokenDigest* tokens) {
  KVKEEP_TRY(found.image.status());
  if (!state_.expectation.is_current(*call.expected)) return miss(MissReason::kLayout, hash);
  const std::optional<TokenDigest>& stored = (*found.image)->header().info.tokens;
  if (tokens != nullptr && stored && *stored != *tokens) return miss(MissReason::kTokens, hash);
  return Image::lend(*found.image, found.source);
}

// A block that was removed while it was read is still right; it is just not kept.
void BlockLoader::touch(const BlockHash& hash, Source source) {
  const double now = state_.clock().wall();
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    if (entry == nullptr || !entry->loadable(state_.clock().mono())) return;
    locked.touch(now);
    entry->file.used = true;
    if (source == Source::kDisk) {
      entry->file.verified = state_.clock().mono();
      entry->file.read_failures = 0;
    }
  }
  if (source != Source::kPending) state_.hot.touch(hash);
}

void BlockLoader::count_hit(const Image& image, Source source, Duration called_at) {
  const bool disk = source == Source::kDisk;
  const uint64_t hot = source == Source::kHot ? 1 : 0;
  const uint64_t unverified = image.header().has_digest ? 0 : 1;
  const Duration took = state_.clock().mono() - called_at;
  state_.stats.add_load(source, static_cast<uint64_t>(took.count()),
                        {{&CacheStats::lookups},
                         {&CacheStats::load_hits},
                         {hit_counter(source)},
                         {&CacheStats::hot_cache_hits, hot},
                         {&CacheStats::unverified_loads, disk ? unverified : 0},
                         {&CacheStats::hits},
                         {&CacheStats::loads},
                         {&CacheStats::bytes_read, disk ? image.file_bytes() : 0},
                         {&CacheStats::misaligned_tensors, disk ? image.misaligned_tensors() : 0}});
}

void BlockLoader::count_miss(const Status& missed) {
  const MissReason why = missed.miss_reason().value_or(MissReason::kUnreadable);
  if (missed.code() == Code::kNotFound) {
    state_.stats.add_miss(why, {{&CacheStats::misses}});
  } else if (missed.code() == Code::kUnavailable) {
    state_.stats.add_miss(why, {{&CacheStats::load_transient_errors}});
  } else {
    state_.stats.add_miss(why);  // A damaged file was counted when it was moved aside.
  }
}

}  // namespace kvkeep
