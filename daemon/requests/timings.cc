#include "daemon/requests/timings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kvkeep::daemon {

std::optional<Timings> find_timings(std::string_view tail) {
  const size_t at = tail.rfind("\"timings\":");
  if (at == std::string_view::npos) return std::nullopt;
  const size_t begin = tail.find('{', at);
  const size_t end = tail.find('}', at);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  const auto json = nlohmann::json::parse(tail.substr(begin, end + 1 - begin), nullptr, false);
  const auto number = [&json](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? found->get<double>() : -1.0;
  };
  if (!json.is_object()) return std::nullopt;
  const double cached = number("cache_n"), computed = number("prompt_n");
  const auto is_count = [](double value) { return value >= 0 && value < 1e15; };
  if (!is_count(cached) || !is_count(computed)) return std::nullopt;
  Timings timings;
  timings.cache_n = static_cast<uint64_t>(cached);
  timings.prompt_n = static_cast<uint64_t>(computed);
  timings.prompt_ms = std::max(0.0, number("prompt_ms"));
  const double predicted = number("predicted_n");
  if (is_count(predicted)) timings.predicted_n = static_cast<uint64_t>(predicted);
  return timings;
}

}  // namespace kvkeep::daemon
