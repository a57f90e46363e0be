#include "directory/field_difference.h"

namespace kvkeep {
namespace {

constexpr const char* kSalt = "salt";
constexpr const char* kSalted = "salted";

std::optional<std::string> value_of(const Fields& fields, const std::string& name) {
  const auto at = fields.find(name);
  if (at == fields.end()) return std::nullopt;
  return name == kSalt ? kSalted : at->second;
}

std::string side_text(const std::string& name, const std::optional<std::string>& value) {
  if (!value) return "without " + name;
  return name == kSalt ? "with a salt" : "for " + name + " '" + *value + "'";
}

// " and " between the parts.
void join(std::string& text, const std::string& part) {
  text += (text.empty() ? "" : " and ") + part;
}

}  // namespace

std::vector<FieldDifference> differences(const Fields& stored, const Fields& asked) {
  Fields names = stored;
  names.insert(asked.begin(), asked.end());
  std::vector<FieldDifference> found;
  for (const auto& [name, ignored] : names) {
    FieldDifference one{name, value_of(stored, name), value_of(asked, name)};
    if (one.stored != one.asked) found.push_back(std::move(one));
  }
  if (found.empty() && stored.count(kSalt) == 1) found.push_back({kSalt, kSalted, kSalted});
  return found;
}

std::string difference_text(const std::vector<FieldDifference>& differences) {
  std::string stored;
  std::string asked;
  for (const FieldDifference& one : differences) {
    if (one.stored && one.stored == one.asked) return "stored with another salt";
    join(stored, side_text(one.name, one.stored));
    join(asked, side_text(one.name, one.asked));
  }
  return "stored " + stored + "; asked " + asked;
}

}  // namespace kvkeep
