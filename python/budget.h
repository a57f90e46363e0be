// kvkeep.HotBudget as Python holds it.
#pragma once

#include <memory>

#include "kvkeep/hot_budget.h"

namespace kvkeep::python {

struct Budget {
  std::shared_ptr<HotBudget> shared;
};

}  // namespace kvkeep::python
