// Log: one line each on standard error, "kvkeep: …" or a JSON object.
//
// Lines speak of tokens by number only, never of what a prompt says.
//
// Threads: any thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kvkeep/environment.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
};
// "debug", "info", "warning", "error". kInvalidArgument naming them.
Result<LogLevel> log_level_from_name(std::string_view name);

class Log : public Logger {
 public:
  explicit Log(const LogSettings& settings);
  ~Log() override;

  void log(LogLevel level, std::string_view message) override;
  // `details` become members of the JSON object; a person sees the message only.
  void log(LogLevel level, std::string_view message, const nlohmann::ordered_json& details);

  void debug(std::string_view message) { log(LogLevel::kDebug, message); }
  void info(std::string_view message) { log(LogLevel::kInfo, message); }
  void warn(std::string_view message) { log(LogLevel::kWarning, message); }

 private:
  struct Sink;
  const LogSettings settings_;
  const std::unique_ptr<Sink> sink_;
};

// What the library says. Its news are details here.
//
// Threads: any thread. The log must outlive it.
class StoreLog : public Logger {
 public:
  explicit StoreLog(Log& log) : log_(log) {}
  void log(LogLevel level, std::string_view message) override {
    log_.log(level == LogLevel::kInfo ? LogLevel::kDebug : level, message);
  }

 private:
  Log& log_;
};

}  // namespace kvkeep::daemon
