// The only file that sees spdlog, which takes long to compile.

#include "daemon/report/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace kvkeep::daemon {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

Result<LogLevel> log_level_from_name(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == name_of(level)) return level;
  }
  return Status(Code::kInvalidArgument,
                "log level '" + std::string(name) + "' is none of debug, info, warning and error");
}

struct Log::Sink {
  spdlog::logger logger{"kvkeep", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log::Log(const LogSettings& settings) : settings_(settings), sink_(std::make_unique<Sink>()) {
  sink_->logger.set_level(level_of(settings.level));
  sink_->logger.set_pattern(settings.json ? "%v" : "kvkeep: %v");
}

Log::~Log() = default;

void Log::log(LogLevel level, std::string_view message) {
  log(level, message, nlohmann::ordered_json::object());
}

void Log::log(LogLevel level, std::string_view message, const nlohmann::ordered_json& details) {
  if (!sink_->logger.should_log(level_of(level))) return;
  std::string line(message);
  if (settings_.json) {
    nlohmann::ordered_json object{
        {"time", system_clock()->wall()}, {"level", name_of(level)}, {"message", line}};
    object.update(details);
    line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  // What others said may be part of it.
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  std::replace_if(line.begin(), line.end(), is_control, ' ');
  sink_->logger.log(level_of(level), "{}", line);
}

}  // namespace kvkeep::daemon
