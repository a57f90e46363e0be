#include <cstdio>
#include <string>

#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

class StderrLogger final : public Logger {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level < LogLevel::kWarning) return;
    const std::string line = "kvkeep: " + std::string(message) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
};

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::shared_ptr<Logger> stderr_logger() {
  static const auto logger = std::make_shared<StderrLogger>();
  return logger;
}

}  // namespace kvkeep
