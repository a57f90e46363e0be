// Whose states the slots of a server hold: its model by content, its build, adapters, the form of
// its slots and what else they depend on.
//
// Threads: the io thread; files are read by Door::keeping.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "daemon/door.h"
#include "daemon/learned_form.h"

namespace kvkeep::daemon {

struct IdentitySettings {
  std::map<std::string, std::string> state_fields{};  // Flags that change the state.
  std::map<std::string, std::string> cache_form{};    // Types of the cache, as given.
  std::optional<std::filesystem::path> model{};       // In place of the path that the server says.
  std::filesystem::path digest_book{};                // Digests of models that were read before.
};

// `stopping` cuts the reading of a large model short.
Async<Found<ServerIdentity>> identify(Door& door, const IdentitySettings& settings,
                                      const std::atomic<bool>& stopping);

}  // namespace kvkeep::daemon
