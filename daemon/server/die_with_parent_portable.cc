#include "daemon/server/child.h"

namespace kvkeep::daemon {

void die_with_parent(pid_t) {}

}  // namespace kvkeep::daemon
