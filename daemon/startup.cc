#include "daemon/startup.h"

#include "daemon/background.h"
#include "daemon/http/pool.h"
#include "daemon/other_builds.h"
#include "daemon/report/words.h"
#include "kvkeep/size_string.h"

namespace kvkeep::daemon {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(50);
// How long requests wait at most once the model is loaded.
constexpr auto kSettle = std::chrono::seconds(2);

Async<void> pause() {
  net::steady_timer timer(co_await net::this_coro::executor, kAskAgain);
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
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

Async<void> look_at_server(Door& door, const IdentitySettings& settings,
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

Async<void> bring_up(Door& door, IdentitySettings settings, const std::atomic<bool>& stopping) {
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
