// What the slot files of a server are like, learned from small slots that it computes and saves.
//
// Threads: the io thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "daemon/door.h"

namespace kvkeep::daemon {

// Why no caching is possible: what a Status does not carry, one word.
struct Obstacle {
  std::string reason;
  std::string text;
};
template <class T>
struct Found {
  std::optional<T> value{};
  Obstacle obstacle{};
};

// What slot files of this server are like, as fields of its identity and in their form.
struct SlotForm {
  std::map<std::string, std::string> fields{};
  llama::SlotLayout layout{};
  std::optional<WholeForm> whole{};
};

// From slot 0, which is empty afterwards. `cache_form`: options that shape the cache, as given;
// they tell states apart whose files do not say what they are.
Async<Found<SlotForm>> learn_form(Door& door, const std::map<std::string, std::string>& cache_form);

}  // namespace kvkeep::daemon
