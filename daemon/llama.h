// `kvkeep llama`: a llama-server that remembers its prompts.
//
// Threads:  the calling thread, which becomes the io thread, and two for the store.
// Blocking: until the server ends or a signal ends both.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "daemon/report/log.h"
#include "daemon/slots/prompt_store.h"

namespace kvkeep::daemon {

struct LlamaOptions {
  StoreSettings store;
  LogSettings log{};
  std::optional<std::filesystem::path> trace{};  // JSON Lines: keys and sizes of each request.
  std::optional<std::filesystem::path> model_file{};
  std::filesystem::path digest_book{};
  std::vector<std::string> command{};  // llama-server and its arguments; empty with attach.
  // A server that somebody else started with --slot-save-path.
  std::optional<std::string> attach{};              // http://host:port/prefix
  std::optional<std::filesystem::path> slot_dir{};  // Its --slot-save-path.
  std::string host = "127.0.0.1";                   // Where clients come, with attach.
  uint16_t port = 8081;
  std::vector<std::string> api_keys{};  // Of the server, with attach.
  std::string label{};                  // What else its state depends on.
};

// Exit statuses besides the server's own (128 + N for signal N).
inline constexpr int kFailedItself = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFoundProgram = 127;

int run_llama(const LlamaOptions& options);

}  // namespace kvkeep::daemon
