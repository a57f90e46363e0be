// The options of llama-server that a proxy must understand: how they are spelled, the variable that
// stands for them, and what they set.
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvkeep::daemon {

enum class Setting : uint8_t {
  kHost,
  kPort,
  kSlotPath,
  kApiPrefix,
  kApiKey,
  kApiKeyFile,
  kTlsKey,
  kTlsCertificate,
  kModel,
  kCachePrompt,
  kCacheReuse,
  kContextShift,
  kSlots,
  kThreadsHttp,
  kState,      // The last value counts.
  kStateList,  // All values count.
  kCacheForm,
  kAdapter,
  kScaledAdapter,
};

enum class Takes : uint8_t { kNothing, kOnOff, kValue, kTwoValues };

struct ServerOption {
  Setting setting;
  Takes takes;
  std::array<std::string_view, 3> names;
  std::string_view negation{};    // Of kOnOff.
  const char* variable{nullptr};  // None: there is no variable.
  // With kOnOff, the variable that turns it off by being there.
  const char* negated_variable{nullptr};
};

std::span<const ServerOption> server_options();

// The option of a word; none of another word. `positive` becomes false for a negation.
const ServerOption* option_of(std::string_view word, bool* positive);

// llama-server reads "--slot_save_path" as "--slot-save-path".
std::string canonical_flag(std::string_view word);

// A flag without a value that stands for a model and its settings, such as --gpt-oss-20b-default.
bool is_model_preset(std::string_view word);

// The last of the names, without dashes: what a state field is called.
std::string state_name(const ServerOption& option);

}  // namespace kvkeep::daemon
