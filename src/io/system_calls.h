// The few system calls that differ between systems. Linux has them in system_calls_linux.cc, every
// other POSIX system in system_calls_portable.cc; the build takes one of the two.
//
// Threads: any thread.
// Errors:  as the calls themselves: 0 or -1 with errno, unless said otherwise.
#pragma once

#include <sys/stat.h>

#include <cstddef>

namespace kvkeep {

// Lets reads and writes of the open file bypass the page cache, or ends that. False if the system
// or the file system refuses.
bool set_direct_io(int fd, bool on);

// The file's bytes and length outlive power loss once this has returned 0.
int sync_file_data(int fd);

// Takes an exclusive lock that belongs to the open file description, not to the process. -1 with
// EAGAIN if somebody else holds it.
int lock_file(int fd);

// Modification time in seconds since the Unix epoch.
double mtime_of(const struct stat& s);

// Asks for huge pages and faults the whole range in. False if there is not enough memory.
// REQUIRES: a private, writable, anonymous mapping that starts at a page.
bool populate_pages(void* start, size_t bytes);

}  // namespace kvkeep
