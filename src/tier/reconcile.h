// Reconciling what the index and the account say with what is in the directory.
//
// Others may remove, replace and add files, and directories grow. Every reconcile_interval, on the
// executor, all names and sizes are listed: files that vanished are forgotten, files that appeared
// are taken up as at open (their headers are read), and directories and service files are counted
// again. Nothing is removed but leftover temporary files. docs/contract.md: RUL-53, DEF-34.
#pragma once

#include <memory>

#include "kvkeep/status.h"
#include "tier/cache_state.h"

namespace kvkeep {

// Once, now. Blocks on the disk, holds no lock meanwhile. Does nothing once the cache is closed.
// kUnavailable if the directory could not be listed or is gone: then nothing was forgotten.
Status reconcile(CacheState& state);

// From now on every Options::reconcile_interval, for as long as the state lives and is not closed.
void reconcile_regularly(const std::shared_ptr<CacheState>& state);

}  // namespace kvkeep
