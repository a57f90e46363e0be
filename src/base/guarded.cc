#include "base/guarded.h"

#include <exception>
#include <new>

namespace kvkeep {
namespace {

constexpr const char* kNoMemory = "out of memory";

// Made before memory can be short.
const Status kOutOfMemory(Code::kResourceExhausted, kNoMemory);
const Status kNoMemoryToLoad(Code::kResourceExhausted, MissReason::kNoMemory, kNoMemory);
const Status kNoMemoryToSave(Code::kResourceExhausted, Refusal::kRefusedNoMemory, kNoMemory);

Status unexpected(Asked asked, const char* what) {
  const std::string message = std::string("unexpected: ") + what;
  if (asked == Asked::kLoad) return Status(Code::kInternal, MissReason::kUnreadable, message);
  if (asked == Asked::kSave) return Status(Code::kInternal, Refusal::kIo, message);
  return Status(Code::kInternal, message);
}

}  // namespace

const Status& out_of_memory(Asked asked) noexcept {
  switch (asked) {
    case Asked::kLoad:
      return kNoMemoryToLoad;
    case Asked::kSave:
      return kNoMemoryToSave;
    case Asked::kOther:
      break;
  }
  return kOutOfMemory;
}

Status status_of_exception(Asked asked) noexcept {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    return out_of_memory(asked);
  } catch (const std::exception& error) {
    return guarded(asked, [&] { return unexpected(asked, error.what()); });
  } catch (...) {
    return guarded(asked, [&] { return unexpected(asked, "an exception without a message"); });
  }
}

}  // namespace kvkeep
