#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "daemon/server/child.h"

namespace kvkeep::daemon {

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // It died before this was set.
}

}  // namespace kvkeep::daemon
