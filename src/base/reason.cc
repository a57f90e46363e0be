#include "kvkeep/reason.h"

#include <array>

#include "kvkeep/event.h"

namespace kvkeep {
namespace {

struct Text {
  std::string_view name, help;
};

#define KVKEEP_X(id, name, help) Text{name, help},
constexpr std::array<Text, kMissReasonCount> kMissText{{KVKEEP_MISS_REASONS(KVKEEP_X)}};
constexpr std::array<Text, kRefusalCount> kRefusalText{{KVKEEP_REFUSALS(KVKEEP_X)}};
#undef KVKEEP_X

constexpr const char* kEventNames[] = {
#define KVKEEP_X(id, name, help) name,
    KVKEEP_EVENTS(KVKEEP_X)
#undef KVKEEP_X
};

}  // namespace

std::string_view name_of(EventKind kind) { return kEventNames[static_cast<size_t>(kind)]; }
std::string_view name_of(MissReason reason) { return kMissText[static_cast<size_t>(reason)].name; }
std::string_view name_of(Refusal reason) { return kRefusalText[static_cast<size_t>(reason)].name; }
std::string_view explain(MissReason reason) { return kMissText[static_cast<size_t>(reason)].help; }
std::string_view explain(Refusal reason) { return kRefusalText[static_cast<size_t>(reason)].help; }

}  // namespace kvkeep
