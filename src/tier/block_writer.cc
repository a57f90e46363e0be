#include "tier/block_writer.h"

#include <cerrno>

#include "tier/removal.h"

namespace kvkeep {
namespace {

Refusal refusal_of(const Status& status) {
  if (status.refusal()) return *status.refusal();
  if (status.sys_errno() == ENOSPC) return Refusal::kNoSpace;
  if (status.sys_errno() == EDQUOT) return Refusal::kQuota;
  return Refusal::kIo;
}

}  // namespace

// One task in flight at a time: the one that raises the count from zero posts it, and each task
// posts its successor.
void BlockWriter::schedule(std::shared_ptr<CacheState> owner) {
  if (waiting_.fetch_add(1) == 0) post(std::move(owner));
}

void BlockWriter::post(std::shared_ptr<CacheState> owner) {
  Executor& executor = *state_.environment.executor;
  executor.post([this, owner = std::move(owner)]() mutable { run_one(std::move(owner)); });
}

void BlockWriter::run_one(std::shared_ptr<CacheState> owner) {
  if (std::optional<QueuedWrite> item = state_.queue.pop()) {
    state_.disk_space->refresh();
    state_.queue.finish(*item, write(*item));
  }
  if (tend_limit()) waiting_.fetch_add(1);
  if (waiting_.fetch_sub(1) > 1) post(std::move(owner));
}

// True if there is more to do: between two steps other blocks are written.
bool BlockWriter::tend_limit() {
  const CallGate::Pass pass(state_.gate);
  return pass && reclaimer_.step_down();
}

WriteEnd BlockWriter::write(const QueuedWrite& item) {
  std::optional<Job> job = claim(item);
  return job ? write(*job) : WriteEnd::kCancelled;
}

WriteEnd BlockWriter::write(Job& job) {
  if (const Status room = make_room(job); !room.ok()) {
    state_.account->unreserve(job.charge);
    return give_up(job, room);
  }
  const Result<TempFile> temp = state_.directory->write_temp(job.write.hash, *job.image);
  if (!temp.ok()) {
    state_.account->release(job.charge);
    count_leftovers();
    return give_up(job, temp.status());
  }
  const Status settled = settle_charge(job, *temp);
  if (!settled.ok() || !begin_commit(job)) {
    state_.directory->discard(*temp);
    state_.account->release(job.charge);
    count_leftovers();
    return settled.ok() ? WriteEnd::kCancelled : give_up(job, settled);
  }
  return commit(job, *temp);
}

WriteEnd BlockWriter::commit(const Job& job, const TempFile& temp) {
  const auto committed = state_.directory->commit(temp, job.write.hash);
  if (!committed.ok()) {
    state_.account->release(job.charge);
    count_leftovers();
    return give_up(job, committed.status());
  }
  end_commit(job);
  if (committed->durable.ok()) return WriteEnd::kWritten;
  state_.stats.add(&CacheStats::errors);
  state_.log(LogLevel::kError, "block " + job.write.hash.short_hex() +
                                   " may not survive power loss: " + committed->durable.message());
  return WriteEnd::kFailed;
}

// Temporary files that the system refuses to remove still occupy the disk.
void BlockWriter::count_leftovers() {
  state_.account->set_overhead(state_.overhead_bytes + state_.directory->leftover_bytes());
}

std::optional<BlockWriter::Job> BlockWriter::claim(const QueuedWrite& item) {
  LockedEntry locked(state_.index, item.hash);
  PendingBlock* pending = locked.get() == nullptr ? nullptr : locked.get()->pending.get();
  if (pending == nullptr || pending->generation != item.ticket.generation) return std::nullopt;
  pending->state = PendingState::kWriting;
  return Job{item, pending->image, pending->layout, pending->charge};
}

Status BlockWriter::make_room(const Job& job) {
  SpaceAccount& account = *state_.account;
  while (!account.begin_write(job.charge)) {
    if (reclaimer_.evict_file() || drop_superseded(job.write.hash)) continue;
    if (account.begin_write(job.charge)) break;  // A removal ended between the two looks.
    return Status(Code::kResourceExhausted, Refusal::kNoSpace,
                  "no block is left that could be evicted");
  }
  return {};
}

// The file that this very write will replace leaves early when nothing else can.
bool BlockWriter::drop_superseded(const BlockHash& hash) {
  std::optional<FileClaim> claim;
  {
    LockedEntry locked(state_.index, hash);
    if (locked.get() == nullptr || locked.get()->busy()) return false;
    if (locked.get()->file.state == FileState::kNone) return false;
    if (locked.get()->file.retry_after > state_.clock().mono()) return false;
    claim = claim_file(locked, hash);
  }
  return reclaimer_.unlink_claimed(*claim);
}

// The file system may have allocated more or less than was charged (RUL-53).
Status BlockWriter::settle_charge(Job& job, const TempFile& temp) {
  if (temp.allocated > job.charge) {
    if (!state_.account->charge_more(temp.allocated - job.charge)) {
      return Status(
          Code::kResourceExhausted, Refusal::kNoSpace,
          "the file takes " + std::to_string(temp.allocated) + " bytes, more than reserved");
    }
  } else {
    state_.account->release(job.charge - temp.allocated);
  }
  job.charge = temp.allocated;
  return {};
}

bool BlockWriter::begin_commit(const Job& job) {
  const auto stale = staleness(*state_.expectation.get(), *job.layout);
  Withdrawn withdrawn;
  {
    LockedEntry locked(state_.index, job.write.hash);
    PendingBlock* pending = locked.get() == nullptr ? nullptr : locked.get()->pending.get();
    const bool gone = pending == nullptr || pending->generation != job.write.ticket.generation;
    if (!gone && !stale) {
      pending->state = PendingState::kCommitting;
      return true;
    }
    if (!gone) withdrawn = withdraw(state_, locked, job.write.hash, *stale);
  }
  end_withdrawal(state_, job.write.hash, std::move(withdrawn));
  state_.stats.add(&CacheStats::writes_cancelled);
  return false;
}

void BlockWriter::end_commit(const Job& job) {
  std::unique_ptr<PendingBlock> written;  // Destroyed after the lock.
  {
    LockedEntry locked(state_.index, job.write.hash);
    Entry& entry = *locked.get();
    state_.account->release(entry.file.allocated);  // Of a file that was replaced.
    written = std::move(entry.pending);
    if (entry.hot != nullptr && entry.hot->image == job.image) state_.hot.mark_clean(*entry.hot);
    BlockFile file;
    file.state = FileState::kDurable;
    file.generation = ++state_.last_file_generation;
    file.file_bytes = job.image->file_bytes();
    file.allocated = job.charge;
    file.used = entry.file.used;  // Loads may have touched the block while it was pending.
    file.last_access = file.used ? entry.file.last_access : state_.clock().wall();
    file.verified = state_.clock().mono();
    file.layout = job.layout;
    entry.file = std::move(file);
    locked.notify();
  }
  state_.stats.add(
      {{&CacheStats::saves_persisted}, {&CacheStats::bytes_written, job.image->file_bytes()}});
}

// The block is lost, unless it had been cancelled anyway or is hot. The file that it would have
// replaced stays.
WriteEnd BlockWriter::give_up(const Job& job, const Status& why) {
  std::unique_ptr<PendingBlock> lost;
  bool still_hot = false;
  {
    LockedEntry locked(state_.index, job.write.hash);
    Entry* entry = locked.get();
    if (entry == nullptr || entry->pending == nullptr) return WriteEnd::kCancelled;
    if (entry->pending->generation != job.write.ticket.generation) return WriteEnd::kCancelled;
    lost = std::move(entry->pending);
    still_hot = entry->hot != nullptr;
    if (still_hot) state_.hot.write_failed(*entry->hot);
    locked.erase_if_empty();
    locked.notify();
  }
  state_.stats.add_refusal(refusal_of(why), {{&CacheStats::ssd_write_drops, still_hot ? 0u : 1u},
                                             {&CacheStats::errors}});
  const bool full = refusal_of(why) == Refusal::kNoSpace || refusal_of(why) == Refusal::kQuota;
  state_.log(LogLevel::kError, std::string(full ? "SSD cache disk full: " : "") + "block " +
                                   job.write.hash.short_hex() +
                                   " was not written: " + why.message());
  return WriteEnd::kFailed;
}

}  // namespace kvkeep
