// What FaultyFileSystem and its open files share: the plan, and the record of what happened.
//
// Threads: any thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/status.h"
#include "testing/fault_plan.h"
#include "testing/operation.h"

namespace kvkeep::testing {

class FaultyCalls {
 public:
  explicit FaultyCalls(std::shared_ptr<FaultPlan> plan) : plan_(std::move(plan)) {}

  FaultPlan& plan() const { return *plan_; }

  // Records the call and asks the plan, which may hold it.
  FaultPlan::Verdict begin(const Operation& operation) KVKEEP_EXCLUDES(mu_);
  // The same for calls that either fail or pass.
  Status check(const Operation& operation) KVKEEP_EXCLUDES(mu_);
  // Runs `call` and records what it changed. Changes are made one at a time, so that the record has
  // them in the order in which the disk saw them.
  Status apply(const Operation& operation, const std::function<Status()>& call)
      KVKEEP_EXCLUDES(mu_, order_);
  // check(), then apply().
  Status change(const Operation& operation, const std::function<Status()>& call)
      KVKEEP_EXCLUDES(mu_, order_);

  std::vector<Operation> calls() const KVKEEP_EXCLUDES(mu_);
  std::vector<Operation> changes() const KVKEEP_EXCLUDES(mu_);
  void clear() KVKEEP_EXCLUDES(mu_);
  // A number for a file that is about to be created.
  uint64_t next_file() KVKEEP_EXCLUDES(mu_);

 private:
  const std::shared_ptr<FaultPlan> plan_;
  Mutex order_;  // Held over one change.
  mutable Mutex mu_;
  std::vector<Operation> calls_ KVKEEP_GUARDED_BY(mu_);
  std::vector<Operation> changes_ KVKEEP_GUARDED_BY(mu_);
  uint64_t files_ KVKEEP_GUARDED_BY(mu_) = 0;
};

// The Status of a planned failure.
Status planned_failure(const Operation& operation, int error);

}  // namespace kvkeep::testing
