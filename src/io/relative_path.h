// The paths that FileSystem takes, cut into components.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/status.h"

namespace kvkeep {

// "a/b" is {"a", "b"}; "" is {}. kInvalidArgument for what could leave the root or name one thing
// in two ways: absolute paths, empty components, "." and "..", a NUL byte.
Result<std::vector<std::string>> split_path(std::string_view path);

// "a" of "a/b", "" of "b".
std::string_view parent_of(std::string_view path);

}  // namespace kvkeep
