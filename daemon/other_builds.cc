#include "daemon/other_builds.h"

#include "kvkeep/directory.h"

namespace kvkeep::daemon {

std::vector<OtherBuild> blocks_of_other_builds(const std::filesystem::path& store,
                                               const std::map<std::string, std::string>& fields) {
  std::map<std::string, OtherBuild> found;
  const auto visit = [&](const BlockRecord& block) {
    if (block.name_space == nullptr) return;
    const std::map<std::string, std::string>& theirs = block.name_space->fields;
    const auto model = theirs.find("model_digest");
    if (model == theirs.end() || model->second != fields.at("model_digest")) return;
    const std::string build = block.name_space->build();
    if (build == fields.at("build")) return;
    OtherBuild& other = found[build];
    other.build = build;
    other.blocks.push_back(block.meta.hash);
    other.bytes += block.allocated;
  };
  std::vector<OtherBuild> all;
  // A store that cannot be listed has nothing to tell.
  if (!list_blocks(store, visit).ok()) return all;
  for (auto& [build, other] : found) all.push_back(std::move(other));
  return all;
}

}  // namespace kvkeep::daemon
