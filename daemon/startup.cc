#include "daemon/startup.h"

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_tokens.h"
#include "daemon/background.h"
#include "daemon/http/pool.h"
#include "daemon/other_builds.h"
#include "daemon/report/words.h"
#include "daemon/server/long_rope.h"
#include "daemon/server/model_digest.h"
#include "daemon/slots/mapped_file.h"
#include "kvkeep/size_string.h"

namespace kvkeep::daemon {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(50);
// How long requests wait at most once the model is loaded.
constexpr auto kSettle = std::chrono::seconds(2);
// Room for a slot of one token, whatever the model.
constexpr uint64_t kProbeBytes = 64 << 20;
// How many tokens more the second of two slots has whose sizes are compared.
constexpr size_t kProbeTokens = 32;

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

Async<void> pause() {
  net::steady_timer timer(co_await net::this_coro::executor, kAskAgain);
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
}

// Slot 0 after a prompt of so many tokens, as the server saves it.
Async<Found<std::shared_ptr<MappedFile>>> save_probe(Door& door, size_t tokens) {
  Found<std::shared_ptr<MappedFile>> found;
  found.obstacle.reason = "old_server";
  const std::optional<SlotFilePermit> permit = door.directory->reserve(kProbeBytes);
  std::vector<uint32_t> prompt(tokens, 1);
  const Status computed = co_await door.api.prefill(0, std::move(prompt));
  if (!computed.ok()) {
    found.obstacle.text = "the server does not compute a short prompt: " + computed.message();
    co_return found;
  }
  const Result<SlotAction> saved = co_await door.api.save_slot(0, permit->name());
  if (!saved.ok()) {
    found.obstacle.text = "the server does not save slots: " + saved.status().message() +
                          " (it needs /slots and --slot-save-path; take a newer llama-server)";
    co_return found;
  }
  const Result<std::shared_ptr<MappedFile>> memory = MappedFile::open(permit->path());
  if (!memory.ok()) {
    found.obstacle = {"slot_dir", "the server saves its slots somewhere else: " +
                                      memory.status().message() + " (give --slot-dir)"};
    co_return found;
  }
  found.value = *memory;
  co_return found;
}

// What slot files of this server are like, as fields of its identity and in their form.
struct SlotForm {
  std::map<std::string, std::string> fields{};
  llama::SlotLayout layout{};
  std::optional<WholeForm> whole{};
};

// A state that cannot be cut: how long its files are, from two of them. What such a file says of
// itself is not known, so the options that shape it tell it from others.
Async<Found<SlotForm>> learn_whole_form(Door& door, const StartupSettings& settings,
                                        const MappedFile& one_token) {
  Found<SlotForm> found;
  const Result<llama::SlotTokens> head = llama::read_slot_tokens(one_token.bytes());
  if (!head.ok()) {
    found.obstacle = {"layout", "the server's slot files are of a kind that is not known: " +
                                    head.status().message()};
    co_return found;
  }
  Found<std::shared_ptr<MappedFile>> more = co_await save_probe(door, 1 + kProbeTokens);
  found.obstacle = more.obstacle;
  if (!more.value.has_value()) co_return found;
  const uint64_t first = one_token.bytes().size();
  const uint64_t longer = std::max<uint64_t>(first, (*more.value)->bytes().size());
  SlotForm form;
  form.whole = WholeForm{first, (longer - first) / kProbeTokens + 1};
  form.fields = settings.cache_form;
  form.fields["state"] = "whole";
  form.fields["slot_file"] = std::to_string(head->version);
  form.fields["slots"] = std::to_string(door.props.slots);
  form.fields["slot_tokens"] = std::to_string(door.props.slot_tokens);
  form.fields["state_bytes"] = std::to_string(first) + "," + std::to_string(longer);
  found.value = std::move(form);
  co_return found;
}

Async<Found<SlotForm>> learn_form(Door& door, const StartupSettings& settings) {
  Found<SlotForm> found;
  const std::optional<SlotReservation> slot = door.gate->try_acquire(0);
  Found<std::shared_ptr<MappedFile>> probe = co_await save_probe(door, 1);
  found.obstacle = probe.obstacle;
  if (!probe.value.has_value()) co_return found;
  const Result<llama::SlotFile> file =
      llama::parse_slot_file((*probe.value)->bytes(), *probe.value);
  if (file.ok()) {
    found.value = SlotForm{llama::layout_fields(file->layout), file->layout, std::nullopt};
  } else {
    door.log.info(
        "this model's state cannot be cut: slots are kept whole, and only chats that go on "
        "find them");
    door.log.debug(file.status().message());
    found = co_await learn_whole_form(door, settings, **probe.value);
  }
  const Status erased = co_await door.api.erase_slot(0);
  if (!erased.ok()) door.log.debug("slot 0 was not erased: " + erased.message());
  co_return found;
}

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
                                                                const StartupSettings& settings,
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

Async<Found<ServerIdentity>> identify(Door& door, const StartupSettings& settings,
                                      const std::atomic<bool>& stopping) {
  Found<ServerIdentity> found;
  Found<SlotForm> form = co_await learn_form(door, settings);
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

Async<void> part_with_other_builds(Door& door) {
  const std::shared_ptr<PromptStore> store = door.store;
  const auto work = [&] {
    std::vector<OtherBuild> others =
        blocks_of_other_builds(store->settings().dir, store->identity().fields);
    for (const OtherBuild& other : others) store->cache().evict_first(other.blocks);
    return others;
  };
  const std::vector<OtherBuild> others = co_await on_pool(door.keeping, work);
  for (const OtherBuild& other : others) {
    door.log.info(format_bytes(other.bytes) + " of this model's blocks are of build '" +
                  other.build + "' and of no use to '" + door.props.build +
                  "'; they leave first (to free them now, stop kvkeep and run: kvkeep rm " +
                  store->settings().dir.string() + " --build '" + other.build + "')");
  }
}

Async<void> open_store(Door& door, ServerIdentity identity) {
  const uint64_t tokens = std::max<uint64_t>(door.props.slot_tokens, 1);
  const Result<std::string> placed =
      door.directory->place(slot_file_bytes(identity, tokens), door.settings.dir);
  if (!placed.ok()) {
    door.stop_caching("slot_dir", "no place for slot files: " + placed.status().message());
    co_return;
  }
  door.log.info(*placed);
  Environment environment;
  environment.logger = std::make_shared<StoreLog>(door.log);
  const auto work = [&]() -> Result<std::shared_ptr<PromptStore>> {
    Result<std::unique_ptr<PromptStore>> opened =
        PromptStore::open(door.settings, identity, environment);
    if (!opened.ok()) return opened.status();
    return std::shared_ptr<PromptStore>(*std::move(opened));
  };
  const Result<std::shared_ptr<PromptStore>> store = co_await on_pool(door.keeping, work);
  if (!store.ok()) {
    door.stop_caching("store", store.status().message() + " (another store: --dir DIR)");
    co_return;
  }
  door.store = *store;
  door.uncached = {};
  const CacheStats stats = door.store->cache().stats();
  const std::string what =
      door.store->is_whole()
          ? " slots for "
          : " blocks of " + std::to_string(door.settings.block_size) + " tokens for ";
  door.log.info("ready: " + format_count(stats.num_blocks) + what +
                door.store->identity().model_name + ", build " + door.props.build);
}

Async<void> settle_soon(Door& door) {
  net::steady_timer timer(door.io, kSettle);
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
  door.settle();
}

Async<void> look_at_server(Door& door, const StartupSettings& settings,
                           const std::atomic<bool>& stopping) {
  if (door.uncached.reason != "loading") co_return;  // It was known before that nothing is cached.
  Result<ServerProps> props = co_await door.api.props();
  if (!props.ok() || props->slots == 0) {
    const std::string why = props.ok() ? "it has no slots" : props.status().message();
    door.stop_caching("old_server", "this server does not tell its slots: " + why);
    co_return;
  }
  door.props = *std::move(props);
  door.gate = std::make_unique<SlotGate>(door.io.get_executor(), door.props.slots);
  Found<ServerIdentity> identity = co_await identify(door, settings, stopping);
  if (stopping) co_return;
  if (!identity.value.has_value()) {
    door.stop_caching(identity.obstacle.reason, identity.obstacle.text);
    co_return;
  }
  co_await open_store(door, *std::move(identity.value));
}

}  // namespace

Async<void> bring_up(Door& door, StartupSettings settings, const std::atomic<bool>& stopping) {
  for (;;) {
    const bool healthy = co_await door.api.is_healthy();
    if (stopping) co_return;
    if (healthy) break;
    co_await pause();
  }
  start(door.io, door.log, "settling", settle_soon(door));
  co_await look_at_server(door, settings, stopping);
  door.settle();
  if (door.is_ready()) co_await part_with_other_builds(door);
}

Async<void> wait_until_settled(Door& door) {
  if (door.is_settled) co_return;
  const bool healthy = co_await door.api.is_healthy();
  while (healthy && !door.is_settled) {
    ErrorCode cancelled;
    co_await door.settling->async_wait(into(cancelled));
  }
}

Async<bool> is_same_server(Door& door) {
  const Result<ServerProps> now = co_await door.api.props();
  if (!now.ok()) co_return false;
  const bool same = now->build == door.props.build && now->model_path == door.props.model_path &&
                    now->slots == door.props.slots && now->slot_tokens == door.props.slot_tokens;
  if (!same && door.is_ready()) {
    door.stop_caching("server_changed",
                      "another server has taken the place of the first (start kvkeep again)");
  }
  co_return same;
}

}  // namespace kvkeep::daemon
