#include "kvkeep/source.h"

namespace kvkeep {

std::string_view name_of(Source source) {
  switch (source) {
    case Source::kHot:
      return "hot";
    case Source::kPending:
      return "pending";
    case Source::kDisk:
      return "disk";
  }
  return "disk";
}

}  // namespace kvkeep
