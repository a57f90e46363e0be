#include "tier/model_stats.h"

#include <map>
#include <nlohmann/json.hpp>

#include "kvkeep/size_string.h"

namespace kvkeep {
namespace {

using ByModel = std::map<std::string, ModelStats>;

ByModel count_models(CacheState& state) {
  ByModel models;
  state.index.visit([&models](const Entry& entry) {
    if (entry.file.state == FileState::kDurable && entry.file.layout != nullptr) {
      ModelStats& model = models[entry.file.layout->model_name];
      ++model.num_files;
      model.total_size_bytes += entry.file.allocated;
    }
    if (entry.hot != nullptr) {
      ModelStats& model = models[entry.hot->layout->model_name];
      ++model.hot_cache_entries;
      model.hot_cache_size_bytes += entry.hot->image->ram_bytes();
    }
  });
  models.erase("");  // Blocks without a name are nobody's.
  return models;
}

std::string_view without_slashes(std::string_view name) {
  return name.substr(0, name.find_last_not_of('/') + 1);
}
std::string_view last_part(std::string_view name) {
  return name.substr(name.find_last_of('/') + 1);
}

// The whole name, or the last part of a path if only one model has it.
ByModel::const_iterator find_model(const ByModel& models, std::string_view wanted) {
  wanted = without_slashes(wanted);
  auto found = models.end();
  size_t alike = 0;
  for (auto model = models.begin(); model != models.end(); ++model) {
    const std::string_view name = without_slashes(model->first);
    if (name == wanted) return model;
    if (last_part(name) != last_part(wanted)) continue;
    found = model;
    ++alike;
  }
  return alike == 1 ? found : models.end();
}

}  // namespace

ModelStats model_stats(CacheState& state, std::string_view model_name) {
  if (without_slashes(model_name).empty()) return {};
  const ByModel models = count_models(state);
  const auto found = find_model(models, model_name);
  if (found == models.end()) return {};
  ModelStats stats = found->second;
  stats.model_name = found->first;
  return stats;
}

std::string stats_json(const CacheState& state, const CacheStats& stats) {
  auto out = nlohmann::ordered_json::parse(to_json(stats));
  const auto add_size = [&out](const char* name, uint64_t bytes) {
    out[name] = bytes;
    out[std::string(name) + "_formatted"] = format_bytes(bytes);
  };
  const auto& directory = state.options.cache_dir;
  out["cache_dir"] = directory ? directory->string() : "None";
  add_size("max_size", stats.max_size_bytes);
  add_size("configured_max_size", stats.configured_max_size_bytes);
  add_size("total_size", stats.total_size_bytes);
  add_size("hot_cache_size", stats.hot_cache_size_bytes);
  add_size("hot_cache_max", stats.hot_cache_max_bytes);
  out["utilization"] = stats.utilization();
  return out.dump();
}

}  // namespace kvkeep
