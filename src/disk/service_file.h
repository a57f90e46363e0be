// Small files under .kvkeep/ that are read and replaced whole.
//
// Threads: any thread for different files; readers any time, since a file is replaced by rename.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

// kNotFound: there is none. kDataLoss: larger than `max_bytes`. kUnavailable.
Result<std::string> read_service_file(FileSystem& file_system, std::string_view path,
                                      uint64_t max_bytes);

// Written aside and renamed: kUnavailable leaves the old file as it was.
Status replace_service_file(FileSystem& file_system, std::string_view path, std::string_view text);

}  // namespace kvkeep
