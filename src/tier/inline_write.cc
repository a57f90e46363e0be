#include "tier/inline_write.h"

#include "tier/block_writer.h"

namespace kvkeep {
namespace {

Status busy(std::string message) {
  return Status(Code::kResourceExhausted, Refusal::kBusy, std::move(message));
}

}  // namespace

Result<Ticket> take_inline_ticket(CacheState& state, uint64_t ram_bytes) {
  if (state.writer->is_overdue()) {
    return busy("the write queue stayed full, and the disk does not answer in time");
  }
  const std::optional<Ticket> ticket = state.queue.take_extra_ticket(ram_bytes);
  if (ticket) return *ticket;
  return Status(Code::kFailedPrecondition, Refusal::kRefusedClosed, "the cache is closing");
}

Result<SaveOutcome> write_inline(CacheState& state, const QueuedWrite& item) {
  const BlockWriter::Written written = state.writer->write_inline(item);
  // The caller hears of a failure, so no later flush names it.
  const bool kept = written.end != WriteEnd::kCancelled && written.failure.ok();
  state.queue.finish(item, kept ? WriteEnd::kWritten : WriteEnd::kCancelled);
  if (!kept && written.failure.ok()) return busy("the block had to leave before it was written");
  if (!kept) return written.failure;
  state.stats.add({{&CacheStats::saves}, {&CacheStats::ssd_inline_write_fallbacks}});
  state.emit(EventKind::kInlineWrite, &item.hash, 0);
  return SaveOutcome::kWrittenInline;
}

}  // namespace kvkeep
