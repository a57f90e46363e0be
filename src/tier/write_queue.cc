#include "tier/write_queue.h"

#include <algorithm>
#include <cassert>

namespace kvkeep {

std::optional<Ticket> WriteQueue::take_ticket(uint64_t ram_bytes, Duration wait,
                                              Entrance entrance) {
  MutexLock lock(mu_);
  const Duration deadline = clock_->mono() + wait;
  const auto is_closed = [&]() KVKEEP_REQUIRES(mu_) {
    return closed_ && entrance != Entrance::kFlush;
  };
  while (!is_closed() && !has_room(ram_bytes, entrance)) {
    const bool in_time = changed_.wait_until(mu_, *clock_, deadline);
    if (!in_time && !has_room(ram_bytes, entrance)) return std::nullopt;
  }
  if (is_closed()) return std::nullopt;
  return issue(ram_bytes);
}

std::optional<Ticket> WriteQueue::take_extra_ticket(uint64_t ram_bytes) {
  MutexLock lock(mu_);
  if (closed_) return std::nullopt;
  return issue(ram_bytes);
}

void WriteQueue::push(QueuedWrite write) {
  MutexLock lock(mu_);
  assert(!spare_.empty());
  Writes& writes = write.can_wait_until ? can_wait_ : pushed_;
  spare_.front() = std::move(write);
  writes.splice(writes.end(), spare_, spare_.begin());
}

std::optional<QueuedWrite> WriteQueue::pop() {
  MutexLock lock(mu_);
  const bool waited = !can_wait_.empty() && can_wait_.front()->can_wait_until <= clock_->mono();
  Writes& from = pushed_.empty() || waited ? can_wait_ : pushed_;
  if (from.empty()) return std::nullopt;
  QueuedWrite write = *std::move(from.front());
  from.pop_front();
  return write;
}

void WriteQueue::finish(const QueuedWrite& write, WriteEnd end) {
  MutexLock lock(mu_);
  if (end == WriteEnd::kWritten) ++written_;
  if (end == WriteEnd::kFailed && failed_.size() < kMaxFailedNamed) {
    try {
      failed_.push_back(write.hash);
    } catch (const std::bad_alloc&) {  // It goes unnamed, but its room is given back.
    }
  }
  release(write.ticket);
}

void WriteQueue::give_back(const Ticket& ticket) {
  MutexLock lock(mu_);
  release(ticket);
}

void WriteQueue::close() {
  MutexLock lock(mu_);
  closed_ = true;
  changed_.notify_all();
}

WriteQueue::Report WriteQueue::wait_finished(std::optional<Duration> deadline) {
  MutexLock lock(mu_);
  const uint64_t last = last_generation_;
  const uint64_t written_before = written_;
  bool in_time = true;
  while (in_time && !open_.empty() && open_.begin()->first <= last) {
    if (deadline) {
      in_time = changed_.wait_until(mu_, *clock_, *deadline);
    } else {
      changed_.wait(mu_);
    }
  }
  const bool finished = open_.empty() || open_.begin()->first > last;
  // Whoever does not get the whole report leaves the names to the next one.
  return {written_ - written_before, finished ? std::exchange(failed_, {}) : failed_, finished};
}

uint64_t WriteQueue::blocks() const {
  MutexLock lock(mu_);
  return open_.size();
}

uint64_t WriteQueue::bytes() const {
  MutexLock lock(mu_);
  return open_bytes_;
}

bool WriteQueue::has_room(uint64_t ram_bytes, Entrance entrance) const {
  if (open_.empty()) return true;
  const uint32_t blocks =
      entrance == Entrance::kBackground ? std::max(1u, max_blocks_ / 2) : max_blocks_;
  return open_.size() < blocks && open_bytes_ <= max_bytes_ &&
         ram_bytes <= max_bytes_ - open_bytes_;
}

Ticket WriteQueue::issue(uint64_t ram_bytes) {
  const Ticket ticket{++last_generation_};
  spare_.emplace_back();
  open_.emplace(ticket.generation, ram_bytes);
  open_bytes_ += ram_bytes;
  return ticket;
}

void WriteQueue::release(const Ticket& ticket) {
  const auto open = open_.find(ticket.generation);
  assert(open != open_.end());
  open_bytes_ -= open->second;
  open_.erase(open);
  while (spare_.size() > open_.size()) spare_.pop_back();  // Those of tickets that were not pushed.
  changed_.notify_all();
}

}  // namespace kvkeep
