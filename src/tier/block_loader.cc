#include "tier/block_loader.h"

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "disk/store_layout.h"
#include "tier/removal.h"

namespace kvkeep {
namespace {

Status miss(MissReason why, const BlockHash& hash) {
  return Status(Code::kNotFound, why,
                "block " + hash.short_hex() + ": " + std::string(explain(why)));
}

Status damaged(const BlockHash& hash, const std::string& what) {
  return Status(Code::kDataLoss, MissReason::kDamaged, "block " + hash.short_hex() + ": " + what);
}

Status no_memory(const Status& why) {
  return Status(Code::kResourceExhausted, MissReason::kNoMemory, why.message());
}

}  // namespace

BatchResult BlockLoader::load(std::span<const BlockHash> keys, BatchMode mode) {
  std::vector<Found> found = find_all(keys, mode);
  read(keys, found);
  BatchResult results;
  results.reserve(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    results.push_back(deliver(keys[i], found[i]));
    found[i].image =
        Status(Code::kInternal, "delivered");  // The caller's views keep the image now.
    if (mode == BatchMode::kPrefix && !results.back().ok()) break;
  }
  return results;
}

BlockLoader::Found BlockLoader::find(const BlockHash& hash) {
  Found found;
  LockedEntry locked(state_.index, hash);
  const Entry* entry = locked.get();
  if (entry == nullptr) {
    found.image = miss(state_.departed.why(hash), hash);
  } else if (entry->pending != nullptr) {
    found.image = entry->pending->image;
    found.source = Source::kPending;
  } else if (entry->file.state == FileState::kDurable) {
    found.generation = entry->file.generation;
    found.file_bytes = entry->file.file_bytes;
    found.layout = entry->file.layout;
  } else {
    const bool leaving = entry->file.state == FileState::kRemoving;
    found.image = miss(leaving ? MissReason::kEvicted : entry->file.why, hash);
  }
  return found;
}

// Up to the first certain miss where only the prefix counts. Disk blocks get their buffers here.
std::vector<BlockLoader::Found> BlockLoader::find_all(std::span<const BlockHash> keys,
                                                      BatchMode mode) {
  std::vector<Found> all;
  for (const BlockHash& hash : keys) {
    Found found = find(hash);
    if (found.layout != nullptr) {
      Result<PooledBuffer> buffer = state_.pool->allocate(round_up(found.file_bytes, kIoAlign));
      if (buffer.ok()) {
        found.buffer = *std::move(buffer);
      } else {
        found.image = no_memory(buffer.status());
      }
    }
    const bool certain_miss = !found.image.ok() && found.buffer.data() == nullptr;
    all.push_back(std::move(found));
    if (certain_miss && mode == BatchMode::kPrefix) break;
  }
  return all;
}

void BlockLoader::read(std::span<const BlockHash> keys, std::vector<Found>& found) {
  std::vector<ReadRequest> requests;
  std::vector<size_t> owners;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].buffer.data() == nullptr) continue;
    requests.push_back({block_path(keys[i]), found[i].buffer.span()});
    owners.push_back(i);
  }
  if (requests.empty()) return;
  state_.engine->read_files(requests, [&](size_t index, const ReadOutcome& outcome) {
    const size_t i = owners[index];
    found[i].image = verify(keys[i], found[i], outcome);
  });
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
    case MissReason::kLayout:
      make_incompatible(state_, hash, found.generation, *image.status().miss_reason());
      break;
    default:
      break;  // The system failed: the file is kept and tried again at the next load.
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
  const DecodeContext context{hash, state_.expectation.require_digest};
  Result<ImagePtr> image = decode_image(std::move(found.buffer), found.file_bytes, context);
  if (image.status().code() == Code::kResourceExhausted) return no_memory(image.status());
  if (!image.ok()) return image;
  // Whole and of this key, but not what the index was told: another program replaced the file
  // (LOAD-16).
  if (state_.layouts.intern((*image)->header()) != found.layout)
    return miss(MissReason::kLayout, hash);
  return image;
}

Result<LoadedBlock> BlockLoader::deliver(const BlockHash& hash, const Found& found) {
  if (!found.image.ok()) {
    count_miss(found.image.status());
    return found.image.status();
  }
  touch(hash);
  count_hit(**found.image, found.source);
  return Image::lend(*found.image, found.source);
}

// A block that was removed while it was read is still right; it is just not kept.
void BlockLoader::touch(const BlockHash& hash) {
  const double now = state_.clock().wall();
  LockedEntry locked(state_.index, hash);
  if (locked.get() == nullptr) return;
  locked.touch();
  locked.get()->file.used = true;
  locked.get()->file.last_access = now;
  locked.get()->file.verified = state_.clock().mono();
}

void BlockLoader::count_hit(const Image& image, Source source) {
  const bool disk = source == Source::kDisk;
  const uint64_t unverified = image.header().has_digest ? 0 : 1;
  state_.stats.add({{&CacheStats::lookups},
                    {&CacheStats::load_hits},
                    {disk ? &CacheStats::load_hits_disk : &CacheStats::load_hits_pending},
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
