#include "kvkeep/hot_budget.h"

#include <algorithm>
#include <string>

#include "base/mutex.h"
#include "ram/hot_ledger.h"

namespace kvkeep {
namespace {

// Blocks that have to stay are asked for once per call, and only so many of them.
constexpr size_t kMostRefusals = 64;

uint64_t at_least_zero(int64_t bytes) { return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)); }

bool is_one_of(const std::vector<HotLedger::Item>& items, const HotLedger::Item& item) {
  return std::any_of(items.begin(), items.end(), [&](const HotLedger::Item& other) {
    return other.hash == item.hash && HotLedger::same(other.owner, item.owner);
  });
}

}  // namespace

struct HotBudget::Ledger {
  using Item = HotLedger::Item;

  Ledger(uint64_t limit, std::shared_ptr<Logger> log) : logger(std::move(log)), max(limit) {}

  // Asks the owner, without a lock. True if the block is gone.
  bool release(const Item& item, Patience patience) KVKEEP_EXCLUDES(mu) {
    const std::shared_ptr<HotOwner> owner = item.owner.lock();
    if (owner != nullptr && !owner->give_up(item.hash, item.generation, patience)) return false;
    MutexLock lock(mu);
    items.erase(item.owner, item.hash, item.generation);
    return true;
  }

  uint64_t shrink(const HotLedger::Scope& scope, uint64_t target, const HashSet& keep)
      KVKEEP_EXCLUDES(mu);
  size_t clear(const HotOwnerRef& ref) KVKEEP_EXCLUDES(mu);
  uint64_t held(const HotLedger::Scope& scope) const KVKEEP_REQUIRES(mu) {
    return scope ? items.share_of(*scope).bytes : items.total();
  }

  const std::shared_ptr<Logger> logger;
  mutable Mutex mu;  // A leaf lock.
  HotLedger items KVKEEP_GUARDED_BY(mu);
  uint64_t max KVKEEP_GUARDED_BY(mu);
};

uint64_t HotBudget::Ledger::shrink(const HotLedger::Scope& scope, uint64_t target,
                                   const HashSet& keep) {
  uint64_t freed = 0;
  std::vector<Item> refused;
  for (;;) {
    std::optional<Item> victim;
    {
      MutexLock lock(mu);
      items.erase_expired();
      if (held(scope) <= target || refused.size() > kMostRefusals) return freed;
      victim = items.oldest(scope, [&](const Item& item) {
        return keep.count(item.hash) > 0 || is_one_of(refused, item);
      });
    }
    if (!victim) return freed;
    if (release(*victim, Patience::kQueueWait)) {
      freed += victim->bytes;
    } else {
      refused.push_back(*std::move(victim));
    }
  }
}

// What the owner put while it was being cleared stays charged.
size_t HotBudget::Ledger::clear(const HotOwnerRef& ref) {
  const std::shared_ptr<HotOwner> owner = ref.lock();
  if (owner == nullptr) return 0;
  std::vector<Item> listed;
  {
    MutexLock lock(mu);
    listed = items.items_of(ref);
  }
  const Result<size_t> count = owner->clear();
  if (!count.ok()) {
    logger->log(LogLevel::kWarning, "a hot tier could not be cleared: " + count.status().message());
    return 0;
  }
  MutexLock lock(mu);
  for (const Item& item : listed) items.erase(ref, item.hash, item.generation);
  return *count;
}

std::shared_ptr<HotBudget> HotBudget::create(int64_t max_bytes, std::shared_ptr<Logger> logger) {
  return std::shared_ptr<HotBudget>(new HotBudget(max_bytes, std::move(logger)));
}

HotBudget::HotBudget(int64_t max_bytes, std::shared_ptr<Logger> logger)
    : ledger_(std::make_unique<Ledger>(at_least_zero(max_bytes),
                                       logger != nullptr ? std::move(logger) : stderr_logger())) {}

HotBudget::~HotBudget() = default;

uint64_t HotBudget::max_bytes() const {
  MutexLock lock(ledger_->mu);
  return ledger_->max;
}

uint64_t HotBudget::total_bytes() const {
  MutexLock lock(ledger_->mu);
  ledger_->items.erase_expired();
  return ledger_->items.total();
}

uint64_t HotBudget::remaining_bytes() const {
  MutexLock lock(ledger_->mu);
  ledger_->items.erase_expired();
  return ledger_->max - std::min(ledger_->max, ledger_->items.total());
}

void HotBudget::set_max_bytes(int64_t max_bytes) {
  MutexLock lock(ledger_->mu);
  ledger_->max = at_least_zero(max_bytes);
}

uint64_t HotBudget::shrink_to(int64_t bytes, const HashSet& keep) {
  return ledger_->shrink(std::nullopt, at_least_zero(bytes), keep);
}

uint64_t HotBudget::shrink_owner(const HotOwnerRef& owner, int64_t bytes, const HashSet& keep) {
  return ledger_->shrink(owner, at_least_zero(bytes), keep);
}

size_t HotBudget::clear_all_owners() {
  std::vector<HotOwnerRef> owners;
  {
    MutexLock lock(ledger_->mu);
    owners = ledger_->items.owners();
  }
  size_t cleared = 0;
  for (const HotOwnerRef& owner : owners) cleared += ledger_->clear(owner);
  return cleared;
}

HotBudget::PutReport HotBudget::put(const HotOwnerRef& owner, const BlockHash& hash, uint64_t bytes,
                                    uint64_t generation, Patience patience) {
  PutReport report;
  std::vector<Ledger::Item> refused;
  const Ledger::Item item{owner, hash, bytes, generation};
  for (;;) {
    std::optional<Ledger::Item> victim;
    {
      MutexLock lock(ledger_->mu);
      HotLedger& items = ledger_->items;
      items.erase_expired();
      const uint64_t others = items.total() - items.charge_of(owner, hash);
      const bool fits = others <= ledger_->max && bytes <= ledger_->max - others;
      if (fits || others == 0) {
        items.insert(item);
        report.stored = true;
        return report;
      }
      if (refused.size() > kMostRefusals) return report;
      victim = items.oldest(std::nullopt, [&](const Ledger::Item& other) {
        const bool self = other.hash == hash && HotLedger::same(other.owner, owner);
        return self || is_one_of(refused, other);
      });
    }
    if (!victim) return report;
    if (ledger_->release(*victim, patience)) {
      report.victims.push_back(victim->hash);
    } else {
      refused.push_back(*std::move(victim));
    }
  }
}

void HotBudget::touch(const HotOwnerRef& owner, const BlockHash& hash) {
  MutexLock lock(ledger_->mu);
  ledger_->items.touch(owner, hash);
}

void HotBudget::forget(const HotOwnerRef& owner, const BlockHash& hash, uint64_t generation) {
  MutexLock lock(ledger_->mu);
  ledger_->items.erase(owner, hash, generation);
}

void HotBudget::forget_owner(const HotOwnerRef& owner) {
  MutexLock lock(ledger_->mu);
  ledger_->items.erase_owner(owner);
}

HotBudget::Share HotBudget::share_of(const HotOwnerRef& owner) const {
  MutexLock lock(ledger_->mu);
  return ledger_->items.share_of(owner);
}

std::vector<BlockHash> HotBudget::blocks_of(const HotOwnerRef& owner) const {
  MutexLock lock(ledger_->mu);
  std::vector<BlockHash> blocks;
  for (const Ledger::Item& item : ledger_->items.items_of(owner)) blocks.push_back(item.hash);
  return blocks;
}

}  // namespace kvkeep
