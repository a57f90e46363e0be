// Writing a block on the thread that saves it, because the write queue stays full.
//
// It costs the caller the time of the write, so it is done only while the disk is known to answer:
// the writer's current write is younger than Options::io_deadline. Otherwise the save is refused.
#pragma once

#include "kvkeep/block_cache.h"
#include "tier/cache_state.h"

namespace kvkeep {

// A ticket beyond the queue's bounds, after it had no room in time. kResourceExhausted (busy): the
// disk does not answer. kFailedPrecondition: the cache is closing.
Result<Ticket> take_inline_ticket(CacheState& state, uint64_t ram_bytes);

// Writes the published block of that ticket, and ends the ticket. kWrittenInline, or why the block
// is not kept. Blocks on the disk.
Result<SaveOutcome> write_inline(CacheState& state, const QueuedWrite& item);

}  // namespace kvkeep
