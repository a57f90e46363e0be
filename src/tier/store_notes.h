// What a cache leaves in its store for the tools: the namespaces that wrote here, and its limit.
//
// A cache works without its notes, so a failure is only logged. While it is open they are written
// on the executor, by one task at a time, and at the latest by close.
#pragma once

#include <memory>

#include "kvkeep/block_hash.h"
#include "kvkeep/chain_keys.h"
#include "tier/cache_state.h"

namespace kvkeep {

// The identity and the limit that the options name.
// REQUIRES: state.directory is open; called before the directory's bytes are counted.
void write_opening_notes(CacheState& state);

// TieredBlockCache's method of this name, while the cache is open. Memory only.
void note_namespace(const std::shared_ptr<CacheState>& state, const BlockHash& root,
                    const Namespace& fields);

// The configured limit has changed. Memory only.
void note_limit(const std::shared_ptr<CacheState>& state);

// What waits to be written, now.
// REQUIRES: nobody else writes notes: the task, or close once no call is inside.
void write_notes(CacheState& state);

}  // namespace kvkeep
