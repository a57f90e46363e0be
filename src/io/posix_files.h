// Open files of the POSIX file system: reading and writing, past the page cache where that works.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "io/file_descriptor.h"
#include "io/file_system.h"

namespace kvkeep {

FileStat to_file_stat(const struct stat& s);

// `path` is for messages. Each file starts with buffered I/O and goes over to direct I/O at the
// first aligned request. A request that is not aligned is buffered; so is everything after a
// refusal.
std::unique_ptr<ReadFile> make_posix_read_file(FileDescriptor fd, std::string path);
// REQUIRES: the file is empty.
std::unique_ptr<WriteFile> make_posix_write_file(FileDescriptor fd, std::string path);

}  // namespace kvkeep
