// From a server that has just been started to one whose prompts are kept: waits until its model is
// loaded, learns the layout of its slots from a slot of one token, tells its model from others by
// the digest of the file, and opens the store.
//
// Threads: the io thread; the digest and the store are worked on by Door::keeping.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "daemon/door.h"

namespace kvkeep::daemon {

struct StartupSettings {
  std::map<std::string, std::string> state_fields{};  // Flags that change the state.
  std::map<std::string, std::string> cache_form{};    // Types of the cache, as given.
  std::optional<std::filesystem::path> model{};       // In place of the path that the server says.
  std::filesystem::path digest_book{};                // Digests of models that were read before.
  bool attached = false;                              // Somebody else started the server.
};

// Ends when Door::is_ready() or it is known why not. `stopping` cuts the digest short.
Async<void> bring_up(Door& door, StartupSettings settings, const std::atomic<bool>& stopping);

// Waits while a server that has loaded its model is being looked at, but not for the digest of a
// large model file.
Async<void> wait_until_settled(Door& door);

// True if the server is still the one whose identity the store was opened for, as far as it can be
// asked; stops caching if not. For servers that somebody else may restart.
Async<bool> is_same_server(Door& door);

}  // namespace kvkeep::daemon
