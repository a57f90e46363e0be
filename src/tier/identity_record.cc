#include "tier/identity_record.h"

#include <algorithm>

#include "disk/namespaces.h"
#include "hash/signature.h"

namespace kvkeep {
namespace {

constexpr uint64_t kAtMostBytes = 1 << 20;
constexpr uint64_t kShareOfLimit = 64;

}  // namespace

void record_identity(const CacheState& state) {
  const Options& options = state.options;
  const std::optional<std::string> digest = identity_digest(options.identity);
  if (!digest) return;
  std::string damage;
  const Status recorded =
      record_namespace(state.directory->file_system(),
                       {*digest, options.model_name, options.identity, state.clock().wall(),
                        std::min(kAtMostBytes, options.max_size_bytes / kShareOfLimit)},
                       damage);
  if (!damage.empty()) state.log(LogLevel::kWarning, damage + ": ignored, and written anew");
  if (recorded.ok()) return;
  state.log(LogLevel::kWarning,
            "tools will not know what identity this cache has: " + recorded.message());
}

}  // namespace kvkeep
