// How an operation ended: OK, or a code that a program can branch on plus a message that a person
// can read.
//
// Nothing in this library throws. A function that can fail returns Status or Result<T>, both
// [[nodiscard]]. Status is cheap when OK (one null pointer) and immutable once made.
//
// Threads: immutable; may be copied between threads freely.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "kvkeep/reason.h"

namespace kvkeep {

enum class Code : uint8_t {
  kOk,
  kNotFound,         // A miss. For a cache this is an answer, not a fault.
  kInvalidArgument,  // An argument is malformed or out of range; the message says what is accepted.
  kFailedPrecondition,  // Closed, in use by another process, or incompatible with what is stored.
  kResourceExhausted,   // Too large, or no room or memory could be found.
  kUnavailable,         // The system failed an operation that may work later.
  kDataLoss,            // Stored bytes contradict their digest or structure.
  kUnimplemented,       // A dtype or layer state that cannot be stored.
  kDeadlineExceeded,    // The time allowed ran out; the message says what is left.
  kInternal,            // A fault of this library.
};

// "not_found", "data_loss", …
std::string_view name_of(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : Status(Rep{code, std::move(message), 0, {}, {}}) {}

  // A failed system call: `error` is the errno.
  static Status from_errno(Code code, std::string message, int error) {
    return Status(Rep{code, std::move(message), error, {}, {}});
  }
  // A failed lookup or a refused save, with the reason that is counted for it.
  Status(Code code, MissReason reason, std::string message)
      : Status(Rep{code, std::move(message), 0, reason, {}}) {}
  Status(Code code, Refusal reason, std::string message)
      : Status(Rep{code, std::move(message), 0, {}, reason}) {}

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : rep_->code; }
  // Empty when OK.
  const std::string& message() const;
  // The errno of a failed system call, else 0.
  int sys_errno() const { return ok() ? 0 : rep_->sys_errno; }
  std::optional<MissReason> miss_reason() const { return ok() ? std::nullopt : rep_->miss; }
  std::optional<Refusal> refusal() const { return ok() ? std::nullopt : rep_->refusal; }
  // "data_loss: block 0a1b…: digest does not match". "ok" when OK.
  std::string to_string() const;

 private:
  struct Rep {
    Code code;
    std::string message;
    int sys_errno;
    std::optional<MissReason> miss;
    std::optional<Refusal> refusal;
  };
  explicit Status(Rep rep) : rep_(std::make_shared<const Rep>(std::move(rep))) {
    assert(rep_->code != Code::kOk);
  }
  std::shared_ptr<const Rep> rep_;  // Null means OK.
};

// A T, or the Status that explains why there is none. Never holds an OK Status.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return status;` both read well.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    assert(!this->status().ok());
  }
  // NOLINTEND(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  // REQUIRES: ok().
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  T& value() {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Status> state_;
};

// Leaves the enclosing function with the error, if there is one.
#define KVKEEP_TRY(expr)                                                     \
  do {                                                                       \
    if (::kvkeep::Status kvkeep_s = (expr); !kvkeep_s.ok()) return kvkeep_s; \
  } while (false)

// KVKEEP_TRY_ASSIGN(auto x, f()): x is f()'s value, or the enclosing function ends with its error.
#define KVKEEP_TRY_ASSIGN(target, expr) \
  KVKEEP_TRY_ASSIGN_1(KVKEEP_CONCAT(kvkeep_r, __LINE__), target, expr)
#define KVKEEP_TRY_ASSIGN_1(tmp, target, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  target = *std::move(tmp)
#define KVKEEP_CONCAT(a, b) KVKEEP_CONCAT_1(a, b)
#define KVKEEP_CONCAT_1(a, b) a##b

}  // namespace kvkeep
