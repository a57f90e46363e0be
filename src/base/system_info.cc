#include <unistd.h>
#include <cerrno>

#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

Result<int64_t> ask(int name, const char* what) {
  errno = 0;
  const long value = sysconf(name);
  if (value > 0) return int64_t{value};
  return Status::from_errno(Code::kUnavailable, std::string("sysconf: cannot tell ") + what, errno);
}

class PosixSystemInfo final : public SystemInfo {
 public:
  Result<int64_t> page_size() const override { return ask(_SC_PAGESIZE, "the page size"); }
  Result<int64_t> physical_pages() const override { return ask(_SC_PHYS_PAGES, "the RAM size"); }
};

}  // namespace

std::shared_ptr<SystemInfo> system_info() {
  static const auto info = std::make_shared<PosixSystemInfo>();
  return info;
}

}  // namespace kvkeep
