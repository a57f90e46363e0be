// What failed system calls look like to the rest of kvkeep: one wording for every file system.
#pragma once

#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep {

// "No such file or directory".
std::string text_of_errno(int error);

// "open 'a/b': No such file or directory": kNotFound for ENOENT, else kUnavailable, with the errno.
Status system_error(std::string_view operation, std::string_view path, int error);

}  // namespace kvkeep
