// What a user's llama-server command says, as far as a proxy before that server must know it, and
// the command that the proxy runs in its place.
//
// Threads: pure functions, but for the files of keys.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/status.h"

namespace kvkeep::daemon {

// The value of an environment variable; none if it is unset or empty.
using Variables = std::function<std::optional<std::string>(const char*)>;

struct ServerCommand {
  std::vector<std::string> arguments{};  // As given; the first is the program.

  // Where the server was to listen. A host may be the path of a Unix socket ("/run/x.sock",
  // "unix:/x.sock"); it is kept as text.
  std::optional<std::string> host{};
  std::optional<uint16_t> port{};
  std::optional<std::string> slot_path{};
  std::string api_prefix{};             // As given: "" or "/llama".
  std::vector<std::string> api_keys{};  // Of flags, variables and files: the server takes any.
  bool has_tls = false;                 // It has a key and a certificate.
  bool is_router = false;               // No argument names a model.

  bool cache_prompt = true;
  uint64_t cache_reuse = 0;
  bool context_shift = false;
  bool slots_off = false;  // GET /slots is.
  std::optional<uint64_t> threads_http{};

  // Types of the cache and flash attention, where they are given. A saved file tells them as well,
  // unless its state is of a kind that is not known.
  std::map<std::string, std::string> cache_form{};
  // What changes the state of equal tokens: the long name of a flag without its dashes, or the name
  // of a variable, and its value. What the saved file itself tells (types of the cache, flash
  // attention) is not here.
  std::map<std::string, std::string> state_fields{};
  std::vector<std::string> adapters{};  // "FILE:SCALE".
};

// A flag wins over its variable. A variable or flag that nobody knows is left to the server.
// kInvalidArgument: no command, a value is missing or malformed, or a flag is written with "=",
// which llama-server refuses. kNotFound, kUnavailable: a file of keys cannot be read.
Result<ServerCommand> read_server_command(std::span<const std::string> words, const Variables& env);

// The command with 127.0.0.1, `port` and `slot_dir` in the place of what it says itself, and with
// enough threads for the proxy's own requests unless it says how many.
std::vector<std::string> child_arguments(const ServerCommand& command, uint16_t port,
                                         const std::string& slot_dir);

// The variables that would speak against child_arguments().
std::vector<std::string> variables_to_unset();

}  // namespace kvkeep::daemon
