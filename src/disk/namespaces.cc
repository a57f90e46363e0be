#include "disk/namespaces.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes.h"
#include "disk/service_file.h"
#include "disk/store_layout.h"
#include "hash/json_document.h"

namespace kvkeep {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kDepthMax = 3;
constexpr uint64_t kReadMax = 8ull << 20;
constexpr size_t kModelNamesMax = 64;
constexpr const char* kIdentity = "identity";
constexpr const char* kRoot = "root";

Status damaged_file(const std::string& what) {
  return Status(Code::kDataLoss, std::string(kNamespacesFile) + ": " + what);
}

bool read_string(element value, std::string& out) {
  std::string_view text;
  if (value.get_string().get(text) != SUCCESS || !is_valid_utf8(text)) return false;
  out = text;
  return true;
}

bool read_names(element value, std::vector<std::string>& out) {
  array items;
  if (value.get_array().get(items) != SUCCESS) return false;
  for (const element item : items) {
    if (!read_string(item, out.emplace_back())) return false;
  }
  return true;
}

bool read_fields(element value, std::map<std::string, std::string>& out) {
  object members;
  if (value.get_object().get(members) != SUCCESS) return false;
  for (const auto member : members) {
    if (!read_string(member.value, out[std::string(member.key)])) return false;
  }
  return true;
}

bool read_kind(element value, bool& is_root) {
  std::string kind;
  if (!read_string(value, kind)) return false;
  is_root = kind == kRoot;
  return is_root || kind == kIdentity;
}

bool read_entry(element value, NamespaceEntry& out) {
  object members;
  element kind;
  element names;
  element fields;
  return value.get_object().get(members) == SUCCESS && members["kind"].get(kind) == SUCCESS &&
         read_kind(kind, out.is_root) && members["model_names"].get(names) == SUCCESS &&
         read_names(names, out.model_names) && members["fields"].get(fields) == SUCCESS &&
         read_fields(fields, out.fields) &&
         members["recorded_at"].get_double().get(out.recorded_at) == SUCCESS;
}

Result<Namespaces> parse(std::string_view text) {
  JsonDocument document;
  const auto root = document.parse(text, kDepthMax);
  object members;
  if (!root || root->get_object().get(members) != SUCCESS) {
    return damaged_file("not one JSON object");
  }
  Namespaces all;
  for (const auto member : members) {
    if (!read_entry(member.value, all[std::string(member.key)])) {
      return damaged_file("an entry is malformed");
    }
  }
  return all;
}

nlohmann::ordered_json to_value(const NamespaceEntry& entry) {
  return {{"kind", entry.is_root ? kRoot : kIdentity},
          {"model_names", entry.model_names},
          {"fields", entry.fields},
          {"recorded_at", entry.recorded_at}};
}

// With the oldest entries left out until number and bytes fit, those in `kept` last; empty if not
// one of these fits.
std::string to_text(const Namespaces& all, const std::set<std::string>& kept, uint64_t max_bytes) {
  std::vector<Namespaces::const_iterator> order;
  for (auto at = all.begin(); at != all.end(); ++at) order.push_back(at);
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    const bool keep_a = kept.count(a->first) == 1;
    const bool keep_b = kept.count(b->first) == 1;
    if (keep_a != keep_b) return keep_a;
    return a->second.recorded_at > b->second.recorded_at;
  });
  if (order.size() > kNamespacesMax) order.resize(kNamespacesMax);
  using Json = nlohmann::ordered_json;
  std::string text;
  for (const auto& at : order) {
    const std::string entry =
        Json(at->first).dump() + ": " +
        to_value(at->second).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() + entry.size() + 4 > max_bytes) break;
    text += (text.empty() ? "{" : ",\n ") + entry;
  }
  return text.empty() ? text : text + "}\n";
}

// True if something changed.
bool add(Namespaces& all, const NamespaceClaim& claim) {
  const auto [at, fresh] = all.try_emplace(claim.digest);
  NamespaceEntry& entry = at->second;
  auto& names = entry.model_names;
  const bool named = std::find(names.begin(), names.end(), claim.model_name) != names.end();
  if (!fresh && (named || names.size() >= kModelNamesMax)) return false;
  if (!named) names.push_back(claim.model_name);
  entry.fields = claim.fields;
  if (const auto salt = entry.fields.find("salt"); salt != entry.fields.end()) {
    salt->second = "salted";
  }
  entry.recorded_at = claim.now;
  entry.is_root = claim.is_root;
  return true;
}

}  // namespace

Result<Namespaces> read_namespaces(FileSystem& file_system) {
  const Result<std::string> text = read_service_file(file_system, kNamespacesFile, kReadMax);
  if (text.ok()) return parse(*text);
  if (text.status().code() == Code::kNotFound) return Namespaces();
  return text.status();
}

Result<std::string> namespaces_with(FileSystem& file_system, std::span<const NamespaceClaim> claims,
                                    uint64_t max_bytes, std::string& damage) {
  Namespaces all;
  Result<Namespaces> found = read_namespaces(file_system);
  if (found.ok()) {
    all = *std::move(found);
  } else if (found.status().code() == Code::kDataLoss) {
    damage = found.status().message();
  } else {
    return found.status();
  }
  std::set<std::string> added;
  for (const NamespaceClaim& claim : claims) {
    if (add(all, claim)) added.insert(claim.digest);
  }
  return added.empty() ? std::string() : to_text(all, added, max_bytes);
}

}  // namespace kvkeep
