#include "daemon/identity.h"

#include "daemon/http/pool.h"
#include "daemon/server/long_rope.h"
#include "daemon/server/model_digest.h"

namespace kvkeep::daemon {
namespace {

// What a model's file is called, without directory and ending.
std::string name_of_model(const ServerProps& props) {
  return std::filesystem::path(props.model_path.empty() ? props.model_alias : props.model_path)
      .stem()
      .string();
}

// The digest of a file with all its parts, remembered or computed.
Async<Found<std::string>> digest_of(Door& door, std::filesystem::path file,
                                    std::filesystem::path book_file,
                                    const std::atomic<bool>& stopping) {
  Found<std::string> found;
  const std::vector<std::filesystem::path> parts = model_parts(file);
  const auto work = [&]() -> Result<std::string> {
    DigestBook book(book_file);
    if (std::optional<std::string> known = book.find(parts)) return *std::move(known);
    int told = 0;
    const auto progress = [&](uint64_t done, uint64_t of) {
      const int percent = of > 0 ? static_cast<int>(done * 100 / of) : 100;
      if (percent / 10 > told / 10 && of > (uint64_t{4} << 30)) {
        door.log.info("reading " + file.string() + ": " + std::to_string(percent) + " %");
      }
      told = percent;
      door.digested_percent = percent;
      return !stopping;
    };
    Result<std::string> digest = digest_of_files(parts, progress);
    if (digest.ok()) book.note(parts, *digest);
    return digest;
  };
  Result<std::string> digest = co_await on_pool(door.keeping, work);
  if (digest.ok()) {
    found.value = *std::move(digest);
  } else {
    found.obstacle = {"model_file", "the model's file cannot be read: " +
                                        digest.status().message() + " (give --model-file)"};
  }
  co_return found;
}

// "adapter.0": digest and scale, for each that is in use.
Async<Found<std::map<std::string, std::string>>> adapter_fields(Door& door,
                                                                const IdentitySettings& settings,
                                                                const std::atomic<bool>& stopping) {
  Found<std::map<std::string, std::string>> found;
  found.value.emplace();
  const std::string text = co_await door.api.adapters();
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) co_return found;
  for (const nlohmann::json& adapter : list) {
    const auto at_scale = adapter.find("scale"), at_path = adapter.find("path");
    const bool has_scale = at_scale != adapter.end() && at_scale->is_number();
    const double scale = has_scale ? at_scale->get<double>() : 1.0;
    if (scale == 0) continue;
    std::filesystem::path path;
    if (at_path != adapter.end() && at_path->is_string()) path = at_path->get<std::string>();
    Found<std::string> digest =
        co_await digest_of(door, std::move(path), settings.digest_book, stopping);
    if (!digest.value.has_value()) {
      found.obstacle = digest.obstacle;
      found.value.reset();
      co_return found;
    }
    const std::string name = "adapter." + std::to_string(found.value->size());
    (*found.value)[name] = *digest.value + " x " + nlohmann::json(scale).dump();
  }
  co_return found;
}

}  // namespace

Async<Found<ServerIdentity>> identify(Door& door, const IdentitySettings& settings,
                                      const std::atomic<bool>& stopping) {
  Found<ServerIdentity> found;
  Found<SlotForm> form = co_await learn_form(door, settings.cache_form);
  found.obstacle = form.obstacle;
  if (!form.value.has_value()) co_return found;

  door.uncached = {"digesting", "the model file is still being read to tell it from others"};
  const std::filesystem::path model = settings.model.value_or(door.props.model_path);
  Found<std::string> digest = co_await digest_of(door, model, settings.digest_book, stopping);
  found.obstacle = digest.obstacle;
  if (!digest.value.has_value()) co_return found;
  Found<std::map<std::string, std::string>> adapters =
      co_await adapter_fields(door, settings, stopping);
  found.obstacle = adapters.obstacle;
  if (!adapters.value.has_value()) co_return found;
  const bool long_rope =
      co_await on_pool(door.keeping, [&] { return has_long_rope(model_parts(model)); });

  ServerIdentity identity;
  identity.model_name = name_of_model(door.props);
  identity.layout = form.value->layout;
  identity.whole = form.value->whole;
  identity.fields = form.value->fields;
  identity.fields.insert(adapters.value->begin(), adapters.value->end());
  identity.fields.insert(settings.state_fields.begin(), settings.state_fields.end());
  identity.fields["model_digest"] = *digest.value;
  if (long_rope) identity.fields["slot_tokens"] = std::to_string(door.props.slot_tokens);
  identity.fields["build"] = door.props.build;
  found.value = std::move(identity);
  co_return found;
}

}  // namespace kvkeep::daemon
