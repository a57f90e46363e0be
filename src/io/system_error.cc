#include "io/system_error.h"

#include <cerrno>
#include <system_error>

namespace kvkeep {

std::string text_of_errno(int error) { return std::generic_category().message(error); }

Status system_error(std::string_view operation, std::string_view path, int error) {
  std::string message(operation);
  message.append(" '").append(path).append("': ").append(text_of_errno(error));
  return Status::from_errno(error == ENOENT ? Code::kNotFound : Code::kUnavailable,
                            std::move(message), error);
}

}  // namespace kvkeep
