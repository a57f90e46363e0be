#include "testing/fault_plan.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "kvkeep/environment.h"

namespace kvkeep::testing {
namespace {

constexpr uint64_t kEveryTime = std::numeric_limits<uint64_t>::max();

}  // namespace

struct BlockedCalls::Gate {
  Mutex mu;
  CondVar changed;
  size_t held KVKEEP_GUARDED_BY(mu) = 0;
  bool open KVKEEP_GUARDED_BY(mu) = false;

  void pass() KVKEEP_EXCLUDES(mu) {
    MutexLock lock(mu);
    ++held;
    changed.notify_all();
    while (!open) changed.wait(mu);
    --held;
  }
};

BlockedCalls::~BlockedCalls() {
  if (gate_ != nullptr) release();
}

bool BlockedCalls::wait_until_blocked(size_t count) {
  const std::shared_ptr<Clock> clock = system_clock();
  const Duration deadline = clock->mono() + std::chrono::seconds(30);
  MutexLock lock(gate_->mu);
  while (gate_->held < count) {
    if (!gate_->changed.wait_until(gate_->mu, *clock, deadline)) return false;
  }
  return true;
}

void BlockedCalls::release() {
  MutexLock lock(gate_->mu);
  gate_->open = true;
  gate_->changed.notify_all();
}

void FaultPlan::add(Fault fault) {
  MutexLock lock(mu_);
  faults_.push_back(std::move(fault));
}

void FaultPlan::fail(Op op, std::string path_part, int error, uint64_t nth) {
  Fault fault;
  fault.op = op;
  fault.path_part = std::move(path_part);
  fault.error = error;
  fault.skip = nth - 1;
  add(std::move(fault));
}

void FaultPlan::fail_every(Op op, std::string path_part, int error) {
  Fault fault;
  fault.op = op;
  fault.path_part = std::move(path_part);
  fault.error = error;
  fault.times = kEveryTime;
  add(std::move(fault));
}

void FaultPlan::short_append(std::string path_part, uint64_t bytes, int error) {
  Fault fault;
  fault.kind = Kind::kShort;
  fault.op = Op::kAppend;
  fault.path_part = std::move(path_part);
  fault.error = error;
  fault.number = bytes;
  add(std::move(fault));
}

void FaultPlan::short_reads(std::string path_part, uint64_t bytes) {
  Fault fault;
  fault.kind = Kind::kShort;
  fault.path_part = std::move(path_part);
  fault.times = kEveryTime;
  fault.number = bytes;
  add(std::move(fault));
}

void FaultPlan::end_reads_at(std::string path_part, uint64_t size) {
  Fault fault;
  fault.kind = Kind::kEndAt;
  fault.path_part = std::move(path_part);
  fault.number = size;
  add(std::move(fault));
}

void FaultPlan::flip_on_read(std::string path_part, uint64_t bit) {
  Fault fault;
  fault.kind = Kind::kFlip;
  fault.path_part = std::move(path_part);
  fault.number = bit;
  add(std::move(fault));
}

BlockedCalls FaultPlan::block(Op op, std::string path_part) {
  Fault fault;
  fault.kind = Kind::kBlock;
  fault.op = op;
  fault.path_part = std::move(path_part);
  fault.gate = std::make_shared<BlockedCalls::Gate>();
  BlockedCalls calls(fault.gate);
  add(std::move(fault));
  return calls;
}

void FaultPlan::set_free_inodes(std::optional<uint64_t> free) {
  MutexLock lock(mu_);
  free_inodes_ = free;
}

void FaultPlan::set_space(std::optional<uint64_t> free) {
  MutexLock lock(mu_);
  free_ = free;
}

void FaultPlan::lose_power_after(uint64_t calls) {
  MutexLock lock(mu_);
  calls_until_power_loss_ = calls;
}

bool FaultPlan::power_lost() const {
  MutexLock lock(mu_);
  return calls_until_power_loss_ == uint64_t{0};
}

void FaultPlan::clear() {
  MutexLock lock(mu_);
  faults_.clear();
  free_.reset();
  free_inodes_.reset();
  calls_until_power_loss_.reset();
}

namespace {

bool contains(const std::string& path, const std::string& part) {
  return path.find(part) != std::string::npos;
}

bool matches(Op op, const std::string& part, const Operation& operation) {
  return op == operation.op && (contains(operation.path, part) || contains(operation.to, part));
}

}  // namespace

FaultPlan::Verdict FaultPlan::before(const Operation& operation) {
  wait_at_gates(operation);
  MutexLock lock(mu_);
  if (changes_disk(operation.op) && calls_until_power_loss_ == uint64_t{0}) return {EIO, {}};
  const Verdict verdict = judge(operation);
  const bool succeeds = changes_disk(operation.op) && verdict.error == 0;
  if (succeeds && calls_until_power_loss_.has_value()) --*calls_until_power_loss_;
  return verdict;
}

void FaultPlan::wait_at_gates(const Operation& operation) {
  std::vector<std::shared_ptr<BlockedCalls::Gate>> gates;
  {
    MutexLock lock(mu_);
    for (const Fault& fault : faults_) {
      if (fault.kind != Kind::kBlock || !matches(fault.op, fault.path_part, operation)) continue;
      gates.push_back(fault.gate);
    }
  }
  for (const auto& gate : gates) gate->pass();
}

FaultPlan::Verdict FaultPlan::judge(const Operation& operation) {
  for (Fault& fault : faults_) {
    if (fault.kind != Kind::kFail && fault.kind != Kind::kShort) continue;
    if (!matches(fault.op, fault.path_part, operation)) continue;
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    if (fault.times == 0) continue;
    if (fault.times != kEveryTime) --fault.times;
    Verdict verdict;
    verdict.error = fault.error;
    if (fault.kind == Kind::kShort) verdict.bytes = std::min(fault.number, operation.bytes);
    return verdict;
  }
  return {};
}

size_t FaultPlan::after_read(std::string_view path, uint64_t offset, std::span<std::byte> bytes) {
  MutexLock lock(mu_);
  size_t left = bytes.size();
  for (const Fault& fault : faults_) {
    if (path.find(fault.path_part) == std::string_view::npos) continue;
    if (fault.kind == Kind::kEndAt) {
      left = std::min<size_t>(left, fault.number - std::min(fault.number, offset));
    }
    const uint64_t byte = fault.number / 8;
    if (fault.kind == Kind::kFlip && byte >= offset && byte - offset < bytes.size()) {
      bytes[byte - offset] ^= std::byte{1} << (fault.number % 8);
    }
  }
  return left;
}

std::optional<uint64_t> FaultPlan::free_inodes() const {
  MutexLock lock(mu_);
  return free_inodes_;
}

std::optional<uint64_t> FaultPlan::free_space() const {
  MutexLock lock(mu_);
  return free_;
}

}  // namespace kvkeep::testing
