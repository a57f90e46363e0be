#include "program/llama_verb.h"

#include <algorithm>
#include <fstream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/store_choice.h"
#include "cli/text.h"
#include "daemon/llama.h"
#include "daemon/store_size.h"
#include "kvkeep/size_string.h"

namespace kvkeep::program {
namespace {

using cli::Arguments;
using cli::Flag;
using daemon::LlamaOptions;

constexpr uint64_t kMaxBlockSize = 4096;

Result<std::string> read_salt(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string salt((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) {
    return Status(Code::kInvalidArgument, "--salt-file " + path + ": cannot be read");
  }
  while (!salt.empty() && (salt.back() == '\n' || salt.back() == '\r')) salt.pop_back();
  if (salt.empty()) return Status(Code::kInvalidArgument, "--salt-file " + path + ": is empty");
  return salt;
}

// "8081", "0.0.0.0:8081", "/run/kvkeep.sock".
Status set_listen(const std::string& text, LlamaOptions& options) {
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const bool is_number =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    options.host = text;
    return Status();
  }
  const unsigned long number = std::stoul(port);
  if (number > UINT16_MAX) return Status(Code::kInvalidArgument, "--listen " + text + ": no port");
  options.port = static_cast<uint16_t>(number);
  if (colon != std::string::npos && colon > 0) options.host = text.substr(0, colon);
  return Status();
}

Status set_store(const Arguments& arguments, const cli::Variables& variables,
                 LlamaOptions& options) {
  daemon::StoreSettings& store = options.store;
  const std::optional<std::filesystem::path> home = cli::store_home(variables);
  if (const auto dir = arguments.value("dir")) {
    store.dir = *dir;
  } else if (home.has_value()) {
    store.dir = *home / "llama";
  } else {
    return Status(Code::kInvalidArgument, "there is no home directory (give --dir)");
  }
  options.digest_book = (home.has_value() ? *home : store.dir.parent_path()) / "models.json";
  store.max_size = daemon::default_max_size(store.dir);
  if (const auto size = arguments.value("max-size")) {
    KVKEEP_TRY_ASSIGN(store.max_size, parse_size(*size));
  }
  store.hot_size = daemon::default_hot_size();
  if (const auto size = arguments.value("hot-size")) {
    KVKEEP_TRY_ASSIGN(store.hot_size, parse_size(*size));
  }
  if (const auto tokens = arguments.value("block-size")) {
    KVKEEP_TRY_ASSIGN(const uint64_t count, cli::parse_count("block-size", *tokens));
    if (count > kMaxBlockSize) {
      return Status(Code::kInvalidArgument, "--block-size: at most 4096 tokens");
    }
    store.block_size = static_cast<uint32_t>(count);
  }
  if (const auto file = arguments.value("salt-file")) {
    KVKEEP_TRY_ASSIGN(store.salt, read_salt(*file));
  } else if (const auto salt = variables("KVKEEP_SALT")) {
    store.salt = *salt;
  }
  return Status();
}

Status set_attach(const Arguments& arguments, const cli::Variables& variables,
                  LlamaOptions& options) {
  options.attach = arguments.value("attach");
  if (const auto dir = arguments.value("slot-dir")) options.slot_dir = *dir;
  if (const auto key = variables("LLAMA_API_KEY")) options.api_keys.push_back(*key);
  options.label = arguments.value("label").value_or("");
  if (!options.attach.has_value()) {
    if (options.slot_dir.has_value() || arguments.value("listen").has_value()) {
      return Status(
          Code::kInvalidArgument,
          "--slot-dir and --listen go with --attach (llama-server's own --slot-save-path, "
          "--host and --port say it otherwise)");
    }
    if (arguments.words.empty()) {
      return Status(Code::kInvalidArgument,
                    "no server to run (write kvkeep llama -- llama-server -m MODEL, or --attach)");
    }
  } else if (!arguments.words.empty()) {
    return Status(Code::kInvalidArgument,
                  "--attach and a server to run exclude each other (leave one out)");
  }
  if (const auto listen = arguments.value("listen")) return set_listen(*listen, options);
  return Status();
}

Result<LlamaOptions> options_of(const Arguments& arguments) {
  const cli::Variables variables = cli::process_variables();
  LlamaOptions options;
  options.command = arguments.words;
  KVKEEP_TRY(set_store(arguments, variables, options));
  KVKEEP_TRY(set_attach(arguments, variables, options));
  if (const auto level = arguments.value("log-level")) {
    KVKEEP_TRY_ASSIGN(options.log.level, daemon::log_level_from_name(*level));
  }
  options.log.json = arguments.has("json-logs");
  if (const auto trace = arguments.value("trace")) options.trace = *trace;
  if (const auto model = arguments.value("model-file")) options.model_file = *model;
  return options;
}

int run(const Arguments& arguments, cli::Console& console) {
  const Result<LlamaOptions> options = options_of(arguments);
  if (!options.ok()) return console.fail("llama", options.status());
  return daemon::run_llama(*options);
}

std::vector<Flag> flags() {
  return {
      {"dir", "DIR", "the store; default $XDG_CACHE_HOME/kvkeep/llama", "KVKEEP_DIR"},
      {"max-size", "SIZE", "what it may occupy; default 10 % of the disk, at most 50GB",
       "KVKEEP_MAX_SIZE"},
      {"hot-size", "SIZE", "RAM for its blocks; default 5 % of it, at most 1GB", "KVKEEP_HOT_SIZE"},
      {"block-size", "TOKENS", "prompts share multiples of this; default 64", "KVKEEP_BLOCK_SIZE"},
      {"salt-file", "FILE", "only prompts stored with this salt are found", "KVKEEP_SALT_FILE"},
      {"log-level", "LEVEL", "what is logged; default info", "KVKEEP_LOG_LEVEL",
       "debug|info|warning|error"},
      {"json-logs", "", "log JSON objects", "KVKEEP_JSON_LOGS"},
      {"trace", "FILE", "append keys and sizes of each request, as JSON Lines", "KVKEEP_TRACE"},
      {"model-file", "FILE", "the model, where the server's own path is not ours",
       "KVKEEP_MODEL_FILE"},
      {"attach", "URL", "use a server that runs already", "KVKEEP_ATTACH"},
      {"slot-dir", "DIR", "with --attach: its --slot-save-path", "KVKEEP_SLOT_DIR"},
      {"listen", "[HOST:]PORT", "with --attach: where clients come; default 127.0.0.1:8081",
       "KVKEEP_LISTEN"},
      {"label", "TEXT", "keeps prompts of servers apart whose flags change the state",
       "KVKEEP_LABEL"}};
}

}  // namespace

cli::Verb llama_verb() {
  return {"llama",
          "[-- llama-server ARGUMENT…]",
          -1,
          "a llama-server that remembers",
          "Runs llama-server with the same host, port and API, and keeps the state of prompts on "
          "disk: after a restart or a slot switch only new tokens are computed. Status at "
          "/kvkeep/. Ends with the server's status; 127 not found, 126 not executable, 125 kvkeep "
          "itself failed.",
          "kvkeep llama --max-size 50GB -- llama-server -m model.gguf -c 16384 --port 8080",
          flags(),
          run};
}

}  // namespace kvkeep::program
