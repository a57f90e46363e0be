// Python code that holds blocks on account of a budget, beside the hot tiers of caches.
#include <nanobind/nanobind.h>

#include <memory>
#include <unordered_map>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "budget.h"
#include "cache.h"

namespace kvkeep::python {
namespace {

// The budget asks it from threads of its own, without the GIL.
class PythonOwner : public HotOwner {
 public:
  explicit PythonOwner(nb::callable give_up) : ask_(std::move(give_up)) {}
  ~PythonOwner() override {
    const nb::gil_scoped_acquire gil;  // The last reference may be one of the budget's threads.
    ask_.reset();
  }
  PythonOwner(const PythonOwner&) = delete;
  PythonOwner& operator=(const PythonOwner&) = delete;

  bool give_up(const BlockHash& hash, uint64_t generation, Patience) override {
    const nb::gil_scoped_acquire gil;
    return !holds(hash, generation) || (agrees(hash) && remove(hash, generation));
  }

  Result<size_t> clear() override {
    const nb::gil_scoped_acquire gil;
    size_t gone = 0;
    for (const auto& [hash, generation] : std::unordered_map(generations_)) {
      if (agrees(hash) && remove(hash, generation)) ++gone;
    }
    return gone;
  }

  // The rest is called with the GIL.
  uint64_t add(const BlockHash& hash) { return generations_[hash] = ++last_generation_; }
  bool remove(const BlockHash& hash, uint64_t generation) {
    if (holds(hash, generation)) generations_.erase(hash);
    return true;
  }
  // The generation that was held, or 0.
  uint64_t remove(const BlockHash& hash) {
    const auto node = generations_.extract(hash);
    return node.empty() ? 0 : node.mapped();
  }
  void remove_all() { generations_.clear(); }

 private:
  bool holds(const BlockHash& hash, uint64_t generation) const {
    const auto held = generations_.find(hash);
    return held != generations_.end() && held->second == generation;
  }

  bool agrees(const BlockHash& hash) const {
    try {
      const nb::object answer = ask_(from_key(hash));
      return answer.ptr() == Py_True;
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a budget asked for a block");
      return false;
    }
  }

  nb::callable ask_;
  std::unordered_map<BlockHash, uint64_t> generations_;
  uint64_t last_generation_ = 0;
};

class BudgetOwner {
 public:
  BudgetOwner(const Budget& budget, nb::callable give_up)
      : budget_(budget.shared), owner_(std::make_shared<PythonOwner>(std::move(give_up))) {}

  bool put(nb::handle key, nb::handle size) {
    const BlockHash hash = to_key(key, Where("key"));
    const uint64_t bytes = to_size(size, Where("size"));
    const uint64_t generation = owner_->add(hash);
    const bool stored =
        without_gil([&] { return budget_->put(owner_, hash, bytes, generation).stored; });
    if (!stored) owner_->remove(hash, generation);
    return stored;
  }

  void touch(nb::handle key) {
    const BlockHash hash = to_key(key, Where("key"));
    without_gil([&] { budget_->touch(owner_, hash); });
  }

  void forget(nb::handle key) {
    const BlockHash hash = to_key(key, Where("key"));
    const uint64_t generation = owner_->remove(hash);
    without_gil([&] { budget_->forget(owner_, hash, generation); });
  }

  void forget_all() {
    owner_->remove_all();
    without_gil([&] { budget_->forget_owner(owner_); });
  }

 private:
  const std::shared_ptr<HotBudget> budget_;
  const std::shared_ptr<PythonOwner> owner_;
};

constexpr const char* kOwnerDoc =
    "Blocks that Python code holds on account of a HotBudget. Its charge ends with this object.\n\n"
    "give_up: called with a key, from any thread, when room is needed; True if the block is gone. "
    "It\n"
    "must not refer to this object, which would then never end.";

constexpr const char* kPutDoc =
    "Charges a block of `size` bytes, most recent, in place of an earlier one of this key, after "
    "making\n"
    "room for it. False, and nothing is charged, if too little could be given up. Releases the "
    "GIL.";

}  // namespace

void bind_budget_owner(nb::module_& module) {
  nb::class_<BudgetOwner>(module, "BudgetOwner", kOwnerDoc)
      .def(nb::init<const Budget&, nb::callable>(), nb::arg("budget"), nb::arg("give_up"))
      .def("put", &BudgetOwner::put, nb::arg("key"), nb::arg("size"), kPutDoc)
      .def("touch", &BudgetOwner::touch, nb::arg("key"), "Makes the block the most recent.")
      .def("forget", &BudgetOwner::forget, nb::arg("key"), "The block is gone.")
      .def("forget_all", &BudgetOwner::forget_all, "All blocks are gone.");
}

}  // namespace kvkeep::python
