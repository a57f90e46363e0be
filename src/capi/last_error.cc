#include "capi/last_error.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "kvkeep/version.h"

namespace kvkeep::capi {
namespace {

struct LastError {
  char message[512] = "";
  const char* reason = "";
};
thread_local LastError last_error;

// Cut where it does not fit, but not inside of a UTF-8 character.
void keep_message(std::string_view text) noexcept {
  size_t size = std::min(text.size(), sizeof last_error.message - 1);
  if (size < text.size()) {
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  }
  std::memcpy(last_error.message, text.data(), size);
  last_error.message[size] = '\0';
}

// Names are literals, so they end with a zero byte.
const char* reason_of(const Status& status) noexcept {
  if (const auto miss = status.miss_reason()) return name_of(*miss).data();
  if (const auto refusal = status.refusal()) return name_of(*refusal).data();
  return "";
}

#define KVKEEP_SAME(id, c_id) \
  static_assert(static_cast<int>(Code::id) == static_cast<int>(c_id), "codes are those of C++")
KVKEEP_SAME(kOk, KVKEEP_OK);
KVKEEP_SAME(kNotFound, KVKEEP_NOT_FOUND);
KVKEEP_SAME(kInvalidArgument, KVKEEP_INVALID_ARGUMENT);
KVKEEP_SAME(kFailedPrecondition, KVKEEP_FAILED_PRECONDITION);
KVKEEP_SAME(kResourceExhausted, KVKEEP_RESOURCE_EXHAUSTED);
KVKEEP_SAME(kUnavailable, KVKEEP_UNAVAILABLE);
KVKEEP_SAME(kDataLoss, KVKEEP_DATA_LOSS);
KVKEEP_SAME(kUnimplemented, KVKEEP_UNIMPLEMENTED);
KVKEEP_SAME(kDeadlineExceeded, KVKEEP_DEADLINE_EXCEEDED);
KVKEEP_SAME(kInternal, KVKEEP_INTERNAL);
#undef KVKEEP_SAME

}  // namespace

kvkeep_status tell(const Status& status) noexcept {
  keep_message(status.message());
  last_error.reason = reason_of(status);
  return static_cast<kvkeep_status>(status.code());
}

kvkeep_status tell_exception() noexcept {
  last_error.reason = "";
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    keep_message("out of memory");
    last_error.reason = "no_memory";
    return KVKEEP_RESOURCE_EXHAUSTED;
  } catch (const std::exception& error) {
    keep_message(error.what());
  } catch (...) {
    keep_message("an exception without a message");
  }
  return KVKEEP_INTERNAL;
}

}  // namespace kvkeep::capi

const char* kvkeep_error_message(void) { return kvkeep::capi::last_error.message; }
const char* kvkeep_error_reason(void) { return kvkeep::capi::last_error.reason; }
const char* kvkeep_version(void) { return KVKEEP_VERSION; }

const char* kvkeep_status_name(kvkeep_status status) {
  // C lets any number pass for an enum; C++ does not even let it be looked at as one.
  unsigned number = 0;
  static_assert(sizeof number == sizeof status);
  std::memcpy(&number, &status, sizeof number);
  const bool known = number <= KVKEEP_INTERNAL;
  return known ? kvkeep::name_of(static_cast<kvkeep::Code>(number)).data() : "unknown";
}
