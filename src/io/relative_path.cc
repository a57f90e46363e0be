#include "io/relative_path.h"

#include <algorithm>

namespace kvkeep {
namespace {

bool is_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> components;
  if (path.empty()) return components;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (!is_component(name)) {
      return Status(Code::kInvalidArgument,
                    "path '" + std::string(path) +
                        "': want names separated by single slashes, below the root");
    }
    components.emplace_back(name);
    begin = end + 1;
  }
  return components;
}

std::string_view parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace kvkeep
