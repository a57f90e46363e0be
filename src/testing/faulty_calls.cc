#include "testing/faulty_calls.h"

#include <cerrno>

#include "io/system_error.h"

namespace kvkeep::testing {

Status planned_failure(const Operation& operation, int error) {
  if (operation.op == Op::kTryLock && error == EAGAIN) {
    return Status::from_errno(Code::kFailedPrecondition,
                              "'" + operation.path + "' is locked by somebody else", error);
  }
  return system_error(name_of(operation.op), operation.path, error);
}

FaultPlan::Verdict FaultyCalls::begin(const Operation& operation) {
  {
    MutexLock lock(mu_);
    calls_.push_back(operation);
  }
  return plan_->before(operation);
}

Status FaultyCalls::check(const Operation& operation) {
  const FaultPlan::Verdict verdict = begin(operation);
  return verdict.error == 0 ? Status() : planned_failure(operation, verdict.error);
}

Status FaultyCalls::apply(const Operation& operation, const std::function<Status()>& call) {
  MutexLock order(order_);
  KVKEEP_TRY(call());
  MutexLock lock(mu_);
  changes_.push_back(operation);
  return {};
}

Status FaultyCalls::change(const Operation& operation, const std::function<Status()>& call) {
  KVKEEP_TRY(check(operation));
  return apply(operation, call);
}

std::vector<Operation> FaultyCalls::calls() const {
  MutexLock lock(mu_);
  return calls_;
}

std::vector<Operation> FaultyCalls::changes() const {
  MutexLock lock(mu_);
  return changes_;
}

void FaultyCalls::clear() {
  MutexLock lock(mu_);
  calls_.clear();
  changes_.clear();
}

uint64_t FaultyCalls::next_file() {
  MutexLock lock(mu_);
  return ++files_;
}

}  // namespace kvkeep::testing
