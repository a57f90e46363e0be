#include "cli/store_stats.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

using Json = nlohmann::ordered_json;

void widen(std::optional<Span>& span, double time) {
  if (!span) span = Span{time, time};
  span->oldest = std::min(span->oldest, time);
  span->newest = std::max(span->newest, time);
}

Json to_value(const Group& group) {
  return {{"blocks", group.blocks},
          {"tokens", group.tokens},
          {"file_bytes", group.file_bytes},
          {"allocated_bytes", group.allocated_bytes},
          {"last_access", group.last_access}};
}

// [{"model_name": …, "blocks": …}, …]
Json list_of(const std::map<std::string, Group>& groups, const char* name) {
  Json out = Json::array();
  for (const auto& [key, group] : groups) {
    Json one{{name, key}};
    one.update(to_value(group));
    if (!group.build.empty()) one["build"] = group.build;
    out.push_back(std::move(one));
  }
  return out;
}

std::string entry(const std::string& name, const std::string& value) {
  constexpr size_t kWidth = 14;
  return name + std::string(kWidth - std::min(kWidth - 1, name.size()), ' ') + value + "\n";
}

std::string files_text(uint64_t files, uint64_t bytes) {
  return count_of(files, "file") + ", " + format_bytes(bytes);
}

std::string groups_text(const std::string& heading, const std::map<std::string, Group>& groups,
                        double now) {
  std::string out;
  for (const auto& [key, group] : groups) {
    const std::string name = group.build.empty()
                                 ? shown(key)
                                 : shown(key.substr(0, 16)) + " (build " + shown(group.build) + ")";
    out += entry(out.empty() ? heading : "", name + ": " + count_of(group.blocks, "block") + ", " +
                                                 format_bytes(group.file_bytes) + ", " +
                                                 count_of(group.tokens, "token") + ", last used " +
                                                 format_age(now - group.last_access) + " ago");
  }
  return out;
}

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string limit_text(const DirectoryTotals& totals) {
  if (!totals.max_size_bytes) return "not known";
  const double used = 100 * share(totals.store_bytes(), *totals.max_size_bytes);
  return format_bytes(*totals.max_size_bytes) + ", " +
         std::to_string(static_cast<uint64_t>(used + 0.5)) + " % of it used";
}

std::string span_text(const Span& span, double now) {
  return format_age(now - span.oldest) + " to " + format_age(now - span.newest) + " ago";
}

}  // namespace

void Group::add(const BlockRecord& block) {
  ++blocks;
  tokens += block.meta.info.token_count;
  file_bytes += block.meta.file_size;
  allocated_bytes += block.allocated;
  last_access = std::max(last_access, block.meta.last_access);
}

void StoreStats::add(const BlockRecord& block) {
  states[std::string(name_of(block.state))].add(block);
  widen(used, block.meta.last_access);
  if (block.state != BlockState::kOk) return;
  widen(created, block.meta.created_at);
  models[block.meta.info.model_name].add(block);
  if (!block.identity) return;
  Group& identity = identities[*block.identity];
  identity.add(block);
  if (block.name_space != nullptr) identity.build = block.name_space->build();
}

std::string stats_json(const StoreStats& stats) {
  const DirectoryTotals& t = stats.totals;
  Json out{{"dir", stats.dir.string()},
           {"blocks", t.blocks},
           {"file_bytes", t.file_bytes},
           {"allocated_bytes", t.block_bytes},
           {"store_bytes", t.store_bytes()},
           {"overhead_bytes", t.overhead_bytes},
           {"quarantine_files", t.quarantine_files},
           {"quarantine_bytes", t.quarantine_bytes},
           {"temp_files", t.temp_files},
           {"temp_bytes", t.temp_bytes},
           {"foreign_files", t.foreign_files},
           {"foreign_bytes", t.foreign_bytes},
           {"capacity_bytes", t.capacity_bytes},
           {"free_bytes", t.free_bytes},
           {"models", list_of(stats.models, "model_name")},
           {"identities", list_of(stats.identities, "identity")}};
  if (t.max_size_bytes) {
    out["configured_max_size_bytes"] = *t.max_size_bytes;
    out["utilization"] = share(t.store_bytes(), *t.max_size_bytes);
  }
  out["states"] = Json::object();
  for (const auto& [state, group] : stats.states) out["states"][state] = group.blocks;
  if (stats.created) {
    out["oldest_created_at"] = stats.created->oldest;
    out["newest_created_at"] = stats.created->newest;
  }
  if (stats.used) {
    out["oldest_last_access"] = stats.used->oldest;
    out["newest_last_access"] = stats.used->newest;
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string stats_text(const StoreStats& stats, double now) {
  const DirectoryTotals& t = stats.totals;
  std::string out = entry("store", shown(stats.dir.string()));
  out += entry("blocks", count_of(t.blocks, "block") + ", " + format_bytes(t.file_bytes));
  out += entry("on the disk", format_bytes(t.store_bytes()) + ": blocks " +
                                  format_bytes(t.block_bytes) + ", directories and service files " +
                                  format_bytes(t.overhead_bytes));
  out += entry("limit", limit_text(t));
  out += entry("quarantine", files_text(t.quarantine_files, t.quarantine_bytes));
  out += entry("temporary", files_text(t.temp_files, t.temp_bytes));
  out += entry("foreign", files_text(t.foreign_files, t.foreign_bytes) + ", not kvkeep's");
  out += entry("free", format_bytes(t.free_bytes) + " of " + format_bytes(t.capacity_bytes));
  out += groups_text("models", stats.models, now);
  out += groups_text("identities", stats.identities, now);
  for (const auto& [state, group] : stats.states) {
    out += entry(state == stats.states.begin()->first ? "states" : "",
                 state + ": " + count_of(group.blocks, "block"));
  }
  if (stats.created) out += entry("created", span_text(*stats.created, now));
  if (stats.used) out += entry("last used", span_text(*stats.used, now));
  return out;
}

}  // namespace kvkeep::cli
