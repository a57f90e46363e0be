// Why a load missed or a save was refused: one vocabulary for statuses, counters, logs and tools.
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvkeep {

// X(enumerator, name, help). The name is what users read in stats, logs and metrics.
#define KVKEEP_MISS_REASONS(X)                                                    \
  X(kAbsent, "absent", "never stored here, or its file was removed from outside") \
  X(kEvicted, "evicted", "gave room to another block")                            \
  X(kDeleted, "deleted", "deleted by a caller")                                   \
  X(kForgotten, "forgotten", "given up by a caller; file kept")                   \
  X(kDamaged, "damaged", "the bytes read fail digest, structure, key or rebuild") \
  X(kIdentity, "identity", "stored under another identity")                       \
  X(kLayout, "layout", "layer types, layer count or signature differ")            \
  X(kBlockSize, "block_size", "stored with another block size")                   \
  X(kBits, "bits", "stored with another TurboQuant bit depth")                    \
  X(kVersion, "version", "format version not understood")                         \
  X(kUnreadable, "unreadable", "the read failed, or the header cannot be parsed") \
  X(kNoMemory, "no_memory", "no buffer for the block")                            \
  X(kSuspect, "suspect", "not tried: earlier reads failed")                       \
  X(kClosed, "closed", "the cache is closed")                                     \
  X(kModel, "model", "stored for another model")                                  \
  X(kTokens, "tokens", "stored for other tokens under the same key")              \
  X(kUndigested, "undigested", "has no digest and one is required")

#define KVKEEP_REFUSALS(X)                                                \
  X(kTooLarge, "too_large", "the block alone exceeds the limit")          \
  X(kNoSpace, "no_space", "no room could be made")                        \
  X(kNoInodes, "no_inodes", "the file system has no free inode")          \
  X(kQuota, "quota", "the user's disk quota is reached")                  \
  X(kBusy, "busy", "the write queue stayed full")                         \
  X(kRefusedNoMemory, "no_memory", "no buffer for the block")             \
  X(kIo, "io", "the file system refused")                                 \
  X(kRefusedModel, "model", "contradicts the model this cache is for")    \
  X(kRefusedLayout, "layout", "contradicts the layers this cache is for") \
  X(kRefusedBits, "bits", "contradicts the bit depth this cache is for")  \
  X(kUnsupported, "unsupported", "a layer state that cannot be stored")   \
  X(kRefusedClosed, "closed", "the cache is closed")

enum class MissReason : uint8_t {
#define KVKEEP_X(id, name, help) id,
  KVKEEP_MISS_REASONS(KVKEEP_X)
#undef KVKEEP_X
};

enum class Refusal : uint8_t {
#define KVKEEP_X(id, name, help) id,
  KVKEEP_REFUSALS(KVKEEP_X)
#undef KVKEEP_X
};

#define KVKEEP_X(id, name, help) +1
inline constexpr size_t kMissReasonCount = 0 KVKEEP_MISS_REASONS(KVKEEP_X);
inline constexpr size_t kRefusalCount = 0 KVKEEP_REFUSALS(KVKEEP_X);
#undef KVKEEP_X

// "damaged", "no_space", …: stable names, one word.
std::string_view name_of(MissReason reason);
std::string_view name_of(Refusal reason);

// One sentence for a person.
std::string_view explain(MissReason reason);
std::string_view explain(Refusal reason);

}  // namespace kvkeep
