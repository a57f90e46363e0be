#include "disk/namespaces.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
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
constexpr const char* kTempSuffix = ".tmp";

Status damaged_file(const std::string& what) {
  return Status(Code::kDataLoss, std::string(kNamespacesFile) + ": " + what);
}

Result<std::string> read_text(FileSystem& file_system) {
  KVKEEP_TRY_ASSIGN(const std::unique_ptr<ReadFile> file, file_system.open_read(kNamespacesFile));
  KVKEEP_TRY_ASSIGN(const FileStat stat, file->stat());
  if (stat.size > kReadMax) return damaged_file(std::to_string(stat.size) + " bytes are too many");
  std::string text(stat.size, '\0');
  KVKEEP_TRY_ASSIGN(const size_t n,
                    file->pread(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(n);
  return text;
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

bool read_entry(element value, NamespaceEntry& out) {
  object members;
  element names;
  element fields;
  return value.get_object().get(members) == SUCCESS &&
         members["model_names"].get(names) == SUCCESS && read_names(names, out.model_names) &&
         members["fields"].get(fields) == SUCCESS && read_fields(fields, out.fields) &&
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
  return {{"kind", "identity"},
          {"model_names", entry.model_names},
          {"fields", entry.fields},
          {"recorded_at", entry.recorded_at}};
}

// With the oldest entries left out until number and bytes fit; empty if not even `kept` fits.
std::string to_text(const Namespaces& all, const std::string& kept, uint64_t max_bytes) {
  std::vector<Namespaces::const_iterator> order;
  for (auto at = all.begin(); at != all.end(); ++at) order.push_back(at);
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if ((a->first == kept) != (b->first == kept)) return a->first == kept;
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

Status write_text(FileSystem& file_system, const std::string& text) {
  const std::string aside = std::string(kNamespacesFile) + kTempSuffix;
  const Status cleared = file_system.unlink(aside);  // Left by an owner that ended.
  if (!cleared.ok() && cleared.code() != Code::kNotFound) return cleared;
  Status written;
  {
    KVKEEP_TRY_ASSIGN(const std::unique_ptr<WriteFile> file, file_system.create_exclusive(aside));
    written = file->append(as_byte_span(text));
  }
  if (written.ok()) written = file_system.rename(aside, kNamespacesFile);
  if (!written.ok()) (void)file_system.unlink(aside);
  return written;
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
  return true;
}

}  // namespace

Result<Namespaces> read_namespaces(FileSystem& file_system) {
  const Result<std::string> text = read_text(file_system);
  if (text.ok()) return parse(*text);
  if (text.status().code() == Code::kNotFound) return Namespaces();
  return text.status();
}

Status record_namespace(FileSystem& file_system, const NamespaceClaim& claim, std::string& damage) {
  Namespaces all;
  Result<Namespaces> found = read_namespaces(file_system);
  if (found.ok()) {
    all = *std::move(found);
  } else if (found.status().code() == Code::kDataLoss) {
    damage = found.status().message();
  } else {
    return found.status();
  }
  if (!add(all, claim)) return {};
  const std::string text = to_text(all, claim.digest, claim.max_bytes);
  return text.empty() ? Status() : write_text(file_system, text);
}

}  // namespace kvkeep
