#include "kvkeep/block_cache.h"

namespace kvkeep {

std::string_view name_of(SaveOutcome outcome) {
  switch (outcome) {
    case SaveOutcome::kStored:
      return "stored";
    case SaveOutcome::kQueued:
      return "queued";
    case SaveOutcome::kWrittenInline:
      return "written";
    case SaveOutcome::kAlreadyPresent:
      break;
  }
  return "present";
}

}  // namespace kvkeep
