#include "tier/block_writer.h"

#include "tier/removal.h"

namespace kvkeep {
namespace {

constexpr Duration kWarnInlineEvery = std::chrono::seconds(60);

}  // namespace

// One task in flight at a time: the one that raises the count from zero posts it, and each task
// posts its successor.
void BlockWriter::schedule(std::shared_ptr<CacheState> owner) {
  const bool first = waiting_.fetch_add(1) == 0;
  if (first || unposted_.exchange(false)) post(std::move(owner));
}

void BlockWriter::catch_up(std::shared_ptr<CacheState> owner) {
  if (unposted_.exchange(false)) post(std::move(owner));
}

// Without memory for a task, the next one to schedule or to catch up tries again.
bool BlockWriter::post(std::shared_ptr<CacheState> owner) {
  try {
    state_.environment.executor->post([this, owner = std::move(owner)] { run(owner); });
    return true;
  } catch (...) {
    unposted_ = true;
    return false;
  }
}

void BlockWriter::run(const std::shared_ptr<CacheState>& owner) {
  run_one();
  if (waiting_.fetch_sub(1) > 1) post(owner);
}

void BlockWriter::run_one() {
  if (const std::optional<QueuedWrite> item = state_.queue.pop())
    state_.queue.finish(*item, write_scheduled(*item));
  if (tend_limit()) waiting_.fetch_add(1);
}

// True if there is more to do: between two steps other blocks are written.
bool BlockWriter::tend_limit() {
  const CallGate::Pass pass(state_.gate);
  if (!pass) return false;
  const bool more = reclaimer_.step_down();
  return reclaimer_.keep_free(state_.options.background_reclaim) || more;
}

WriteEnd BlockWriter::write_scheduled(const QueuedWrite& item) {
  writing_since_ = state_.clock().mono().count();
  std::optional<Job> job = claim(item, Source::kBackground);
  const WriteEnd end = job ? write_guarded(*job) : WriteEnd::kCancelled;
  writing_since_ = -1;
  if (end == WriteEnd::kCancelled) state_.emit(EventKind::kWriteCancelled, &item.hash, 0);
  return end;
}

BlockWriter::Written BlockWriter::write_inline(const QueuedWrite& item) {
  std::optional<Job> job = claim(item, Source::kInline);
  if (!job) return {};
  warn_of_inline_write();
  const WriteEnd end = write_guarded(*job);
  return {end, std::move(job->failure)};
}

bool BlockWriter::is_overdue() const {
  const int64_t since = writing_since_;
  return since >= 0 && state_.clock().mono() - Duration(since) > state_.options.io_deadline;
}

WriteEnd BlockWriter::write_guarded(Job& job) {
  try {
    state_.disk_space->refresh();
    return write(job);
  } catch (...) {
    return recover(job);
  }
}

WriteEnd BlockWriter::recover(Job& job) {
  state_.stats.add(&CacheStats::writer_restarts);
  try {
    discard(job);
    give_back(job);
    return give_up(job, Status(Code::kInternal, Refusal::kIo, "an unexpected exception"));
  } catch (...) {
    return WriteEnd::kFailed;  // No memory even for words.
  }
}

WriteEnd BlockWriter::write(Job& job) {
  Status failed = can_be_reached(state_, job.image->header().info.parent);
  if (failed.ok()) failed = write_temp(job);
  if (failed.ok()) failed = settle_charge(job);
  if (failed.ok() && begin_commit(job)) return commit(job);
  discard(job);
  give_back(job);
  return failed.ok() ? WriteEnd::kCancelled : give_up(job, failed);
}

WriteEnd BlockWriter::commit(Job& job) {
  const auto committed = state_.directory->commit(*job.temp, job.write.hash);
  job.temp.reset();  // In place, or gone.
  if (!committed.ok()) {
    count_leftovers();
    give_back(job);
    return give_up(job, committed.status());
  }
  end_commit(job);
  if (committed->durable.ok()) return WriteEnd::kWritten;
  state_.stats.add(&CacheStats::errors);
  state_.log(LogLevel::kError, "block " + job.write.hash.short_hex() +
                                   " may not survive power loss: " + committed->durable.message());
  return WriteEnd::kFailed;
}

// A disk that is full is asked once more after room was made.
Status BlockWriter::write_temp(Job& job) {
  const Status failed = try_write_temp(job);
  if (failed.ok() || !is_full(failed) || !full_disk_.make_room(job.charge)) return failed;
  state_.account->reserve(job.charge);
  job.held = Charge::kReserved;
  return try_write_temp(job);
}

Status BlockWriter::try_write_temp(Job& job) {
  KVKEEP_TRY(make_room(job));
  Result<TempFile> temp = state_.directory->write_temp(job.write.hash, *job.image);
  if (temp.ok()) {
    job.temp = *std::move(temp);
    return {};
  }
  count_leftovers();
  give_back(job);
  return temp.status();
}

void BlockWriter::discard(Job& job) {
  if (!job.temp) return;
  state_.directory->discard(*job.temp);
  job.temp.reset();
  count_leftovers();
}

void BlockWriter::give_back(Job& job) {
  if (job.held == Charge::kReserved) state_.account->unreserve(job.charge);
  if (job.held == Charge::kUsed) state_.account->release(job.charge);
  job.held = Charge::kNone;
}

// Temporary files that the system refuses to remove still occupy the disk.
void BlockWriter::count_leftovers() {
  state_.account->set_overhead(state_.overhead_bytes + state_.directory->leftover_bytes());
}

std::optional<BlockWriter::Job> BlockWriter::claim(const QueuedWrite& item, Source source) {
  LockedEntry locked(state_.index, item.hash);
  PendingBlock* pending = locked.get() == nullptr ? nullptr : locked.get()->pending.get();
  if (pending == nullptr || pending->generation != item.ticket.generation) return std::nullopt;
  pending->state = PendingState::kWriting;
  return Job{item, pending->image, pending->layout, pending->charge, source};
}

Status BlockWriter::make_room(Job& job) {
  SpaceAccount& account = *state_.account;
  while (!account.begin_write(job.charge)) {
    if (reclaimer_.evict_file() || drop_superseded(job.write.hash)) continue;
    if (account.begin_write(job.charge)) break;  // A removal ended between the two looks.
    return Status(Code::kResourceExhausted, Refusal::kNoSpace,
                  "no block is left that could be evicted");
  }
  job.held = Charge::kUsed;
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
Status BlockWriter::settle_charge(Job& job) {
  const uint64_t allocated = job.temp->allocated;
  if (allocated > job.charge) {
    if (!state_.account->charge_more(allocated - job.charge)) {
      return Status(Code::kResourceExhausted, Refusal::kNoSpace,
                    "the file takes " + std::to_string(allocated) + " bytes, more than reserved");
    }
  } else {
    state_.account->release(job.charge - allocated);
  }
  job.charge = allocated;
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

void BlockWriter::end_commit(Job& job) {
  std::unique_ptr<PendingBlock> written;  // Destroyed after the lock.
  {
    LockedEntry locked(state_.index, job.write.hash);
    Entry& entry = *locked.get();
    state_.account->release(entry.file.allocated);  // Of a file that was replaced.
    job.held = Charge::kNone;                       // The index has it now.
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
  state_.emit(EventKind::kWriteCommitted, &job.write.hash, job.image->file_bytes());
}

// The block is lost, unless it had been cancelled anyway or is hot. The file that it would have
// replaced stays.
WriteEnd BlockWriter::give_up(Job& job, const Status& why) {
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
  Refusal reason = why.refusal().value_or(Refusal::kIo);
  if (reason == Refusal::kNoSpace && !still_hot)
    state_.departed.remember(job.write.hash, MissReason::kEvicted);
  if (is_full(why)) {
    reason = full_disk_.reason(why);
    state_.disk_space->drop();
  }
  job.failure = Status(why.code(), reason, why.message());
  state_.emit(EventKind::kWriteFailed, &job.write.hash, job.image->file_bytes());
  report(job, reason, still_hot);
  return WriteEnd::kFailed;
}

// A saver that waits for its write counts the refusal itself.
void BlockWriter::report(const Job& job, Refusal reason, bool still_hot) {
  const bool background = job.source == Source::kBackground;
  if (background) {
    state_.stats.add_refusal(
        reason, {{&CacheStats::ssd_write_drops, still_hot ? 0u : 1u}, {&CacheStats::errors}});
  } else {
    state_.stats.add(&CacheStats::errors);
  }
  const bool full =
      reason == Refusal::kNoSpace || reason == Refusal::kNoInodes || reason == Refusal::kQuota;
  const std::string source = background ? " (background)" : " (inline-fallback)";
  state_.log(LogLevel::kError, std::string(full ? "SSD cache disk full: " : "") + "block " +
                                   job.write.hash.short_hex() + " was not written" + source + ": " +
                                   std::string(explain(reason)) + ": " + job.failure.message());
}

void BlockWriter::warn_of_inline_write() {
  const int64_t now = state_.clock().mono().count();
  int64_t last = inline_warned_;
  if (last >= 0 && Duration(now - last) < kWarnInlineEvery) return;
  if (!inline_warned_.compare_exchange_strong(last, now)) return;
  state_.log(LogLevel::kWarning, "the write queue stays full (pending_cap " +
                                     std::to_string(state_.queue.max_blocks()) +
                                     " blocks): a block is written on the thread that saves it");
}

}  // namespace kvkeep
