#include "kvkeep/block_cache.h"

namespace kvkeep {

std::string_view name_of(SaveOutcome outcome) {
  return outcome == SaveOutcome::kQueued ? "queued" : "present";
}

}  // namespace kvkeep
