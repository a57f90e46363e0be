#include "daemon/server/server_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>

#include "daemon/server/server_options.h"

namespace kvkeep::daemon {
namespace {

// The server's own number follows its slots; a request that waits for a slot holds a thread, and
// the proxy must still get through.
constexpr uint64_t kThreadsHttp = 64;

constexpr const char* kRotationOff = "LLAMA_ATTN_ROT_DISABLE";

Status wrong(const std::string& origin, const std::string& value, const std::string& accepted) {
  return Status(Code::kInvalidArgument, origin + " \"" + value + "\": write " + accepted);
}

Result<int64_t> whole_number(const std::string& origin, const std::string& value, int64_t least,
                             int64_t most) {
  int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [after, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc() && after == end && number >= least && number <= most) return number;
  return wrong(origin, value,
               "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

// "a,b"; a value in double quotes may hold commas, and quotes written twice.
std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> values(1);
  bool quoted = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"' && quoted && i + 1 < list.size() && list[i + 1] == '"') {
      values.back() += list[++i];
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (list[i] == ',' && !quoted) {
      values.emplace_back();
    } else {
      values.back() += list[i];
    }
  }
  std::erase(values, "");
  return values;
}

// As llama-server reads the values of its variables.
std::optional<bool> truth_of(const std::string& value) {
  for (const char* yes : {"on", "enabled", "true", "1"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"off", "disabled", "false", "0"}) {
    if (value == no) return false;
  }
  return std::nullopt;
}

Status add_keys_of(const std::string& file, std::vector<std::string>* keys) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string line;
  while (in && std::getline(in, line)) {
    if (!line.empty() && line[0] != '#') keys->push_back(line);
  }
  if (in.is_open() && !in.bad()) return {};
  const int error = errno;
  return Status::from_errno(error == ENOENT ? Code::kNotFound : Code::kUnavailable,
                            "API key file " + file + ": " + std::strerror(error), error);
}

// Takes settings in the order in which they count: variables, then words.
class Reader {
 public:
  // `values` are those that the option takes, none of a switch.
  Status take(const ServerOption& option, bool positive, const std::string& origin,
              const std::vector<std::string>& values) {
    if (option.takes == Takes::kOnOff) {
      take_switch(option.setting, positive);
      return {};
    }
    if (option.takes == Takes::kNothing) {
      command_.state_fields[state_name(option)] = "true";
      return {};
    }
    if (option.takes == Takes::kTwoValues) {
      command_.state_fields[state_name(option)] = values[0] + "," + values[1];
      return {};
    }
    return take_value(option, origin, values[0]);
  }
  void take_preset() { has_model_ = true; }
  void take_rotation_off() { command_.state_fields[kRotationOff] = "1"; }

  ServerCommand finish(std::span<const std::string> words) {
    command_.arguments.assign(words.begin(), words.end());
    command_.has_tls = !tls_key_.empty() && !tls_certificate_.empty();
    command_.is_router = !has_model_;
    return std::move(command_);
  }

 private:
  void take_switch(Setting setting, bool on) {
    if (setting == Setting::kCachePrompt) command_.cache_prompt = on;
    if (setting == Setting::kContextShift) command_.context_shift = on;
    if (setting == Setting::kSlots) command_.slots_off = !on;
  }

  Status take_value(const ServerOption& option, const std::string& origin,
                    const std::string& value) {
    switch (option.setting) {
      case Setting::kHost:
        command_.host = value;
        break;
      case Setting::kSlotPath:
        command_.slot_path = value;
        break;
      case Setting::kApiPrefix:
        command_.api_prefix = value;
        break;
      case Setting::kTlsKey:
        tls_key_ = value;
        break;
      case Setting::kTlsCertificate:
        tls_certificate_ = value;
        break;
      case Setting::kModel:
        has_model_ = has_model_ || !value.empty();
        break;
      case Setting::kState:
        command_.state_fields[state_name(option)] = value;
        break;
      case Setting::kCacheForm:
        command_.cache_form[state_name(option)] = value;
        break;
      case Setting::kApiKeyFile:
        return add_keys_of(value, &command_.api_keys);
      case Setting::kPort:
      case Setting::kCacheReuse:
      case Setting::kThreadsHttp:
        return take_number(option.setting, origin, value);
      default:
        take_list(option, value);
        break;
    }
    return {};
  }

  Status take_number(Setting setting, const std::string& origin, const std::string& value) {
    const bool port = setting == Setting::kPort;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    KVKEEP_TRY_ASSIGN(const int64_t number,
                      whole_number(origin, value, port ? 0 : -1, port ? 65535 : kMost));
    if (port) command_.port = static_cast<uint16_t>(number);
    if (setting == Setting::kCacheReuse) command_.cache_reuse = std::max<int64_t>(number, 0);
    if (setting == Setting::kThreadsHttp) {
      command_.threads_http.reset();
      if (number > 0) command_.threads_http = number;
    }
    return {};
  }

  void take_list(const ServerOption& option, const std::string& value) {
    if (option.setting == Setting::kStateList) {
      std::string& all = command_.state_fields[state_name(option)];
      all += (all.empty() ? "" : ",") + value;
      return;
    }
    const bool key = option.setting == Setting::kApiKey;
    const bool scaled = option.setting == Setting::kScaledAdapter;
    for (const std::string& item : split_list(value)) {
      if (key) {
        command_.api_keys.push_back(item);
      } else {
        command_.adapters.push_back(scaled ? item : item + ":1");
      }
    }
  }

  ServerCommand command_;
  std::string tls_key_, tls_certificate_;
  bool has_model_ = false;
};

Status read_variable(const ServerOption& option, const Variables& env, Reader* reader) {
  if (option.negated_variable != nullptr && env(option.negated_variable)) {
    return reader->take(option, false, option.negated_variable, {});
  }
  if (option.variable == nullptr) return {};
  const std::optional<std::string> value = env(option.variable);
  if (!value) return {};
  if (option.takes == Takes::kValue) return reader->take(option, true, option.variable, {*value});
  const std::optional<bool> truth = truth_of(*value);
  if (option.takes == Takes::kOnOff && !truth) return wrong(option.variable, *value, "on or off");
  const bool unset_switch = option.takes == Takes::kNothing && !truth.value_or(false);
  return unset_switch ? Status() : reader->take(option, *truth, option.variable, {});
}

size_t count_of_values(Takes takes) {
  return takes == Takes::kValue ? 1 : takes == Takes::kTwoValues ? 2 : 0;
}

// "--port=80" of an option that is known.
Status refuse_equals(const std::string& word) {
  const size_t equals = word.find('=');
  bool positive = true;
  if (equals == std::string::npos || option_of(word.substr(0, equals), &positive) == nullptr) {
    return {};
  }
  return Status(Code::kInvalidArgument, word + ": llama-server takes \"" + word.substr(0, equals) +
                                            " " + word.substr(equals + 1) + "\"");
}

// Older servers take "FILE SCALE" where today's take "FILE:SCALE".
bool scale_is_a_word(const ServerOption& option, const std::vector<std::string>& values,
                     size_t words_left) {
  return words_left > 2 && state_name(option).ends_with("-scaled") &&
         values[0].find(':') == std::string::npos;
}

// Reads the option at words[at], if there is one; returns the words used.
Result<size_t> read_word(std::span<const std::string> words, size_t at, Reader* reader) {
  const std::string& word = words[at];
  bool positive = true;
  const ServerOption* const option = option_of(word, &positive);
  if (option == nullptr) {
    if (is_model_preset(word)) reader->take_preset();
    KVKEEP_TRY(refuse_equals(word));
    return size_t{1};
  }
  const size_t count = count_of_values(option->takes);
  if (words.size() - at - 1 < count) {
    return Status(Code::kInvalidArgument, word + ": a value is missing");
  }
  std::vector<std::string> values(words.begin() + at + 1, words.begin() + at + 1 + count);
  if (scale_is_a_word(*option, values, words.size() - at)) {
    values[0] += ":" + words[at + 2];
    KVKEEP_TRY(reader->take(*option, positive, word, values));
    return count + 2;
  }
  KVKEEP_TRY(reader->take(*option, positive, word, values));
  return count + 1;
}

bool is_replaced(const ServerOption& option, const ServerCommand& command) {
  return option.setting == Setting::kHost || option.setting == Setting::kPort ||
         option.setting == Setting::kSlotPath ||
         (option.setting == Setting::kThreadsHttp && !command.threads_http);
}

}  // namespace

Result<ServerCommand> read_server_command(std::span<const std::string> words,
                                          const Variables& env) {
  if (words.empty() || words[0].empty()) {
    return Status(Code::kInvalidArgument, "no command: write -- llama-server and its arguments");
  }
  Reader reader;
  for (const ServerOption& option : server_options()) {
    KVKEEP_TRY(read_variable(option, env, &reader));
  }
  const std::optional<std::string> rotation = env(kRotationOff);
  if (rotation && std::atoi(rotation->c_str()) != 0) reader.take_rotation_off();
  for (size_t at = 1; at < words.size();) {
    KVKEEP_TRY_ASSIGN(const size_t used, read_word(words, at, &reader));
    at += used;
  }
  return reader.finish(words);
}

std::vector<std::string> child_arguments(const ServerCommand& command, uint16_t port,
                                         const std::string& slot_dir) {
  std::vector<std::string> out;
  const std::vector<std::string>& words = command.arguments;
  for (size_t at = 0; at < words.size();) {
    bool positive = true;
    const ServerOption* const option = at > 0 ? option_of(words[at], &positive) : nullptr;
    const size_t used = 1 + (option != nullptr ? count_of_values(option->takes) : 0);
    const size_t end = std::min(at + used, words.size());
    if (option == nullptr || !is_replaced(*option, command)) {
      out.insert(out.end(), words.begin() + at, words.begin() + end);
    }
    at = end;
  }
  out.insert(out.end(), {"--host", "127.0.0.1", "--port", std::to_string(port)});
  out.insert(out.end(), {"--slot-save-path", slot_dir});
  if (!command.threads_http) {
    out.insert(out.end(), {"--threads-http", std::to_string(kThreadsHttp)});
  }
  return out;
}

std::vector<std::string> variables_to_unset() {
  // No llama-server has a variable for the slot directory yet; one that gets it must not obey it.
  return {"LLAMA_ARG_HOST", "LLAMA_ARG_PORT", "LLAMA_ARG_SLOT_SAVE_PATH"};
}

}  // namespace kvkeep::daemon
