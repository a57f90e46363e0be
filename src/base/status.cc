#include "kvkeep/status.h"

namespace kvkeep {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kNotFound:
      return "not_found";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kFailedPrecondition:
      return "failed_precondition";
    case Code::kResourceExhausted:
      return "resource_exhausted";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data_loss";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

const std::string& Status::message() const {
  static const std::string empty;
  return ok() ? empty : rep_->message;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(name_of(code())) + ": " + message();
}

}  // namespace kvkeep
