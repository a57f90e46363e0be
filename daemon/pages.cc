#include "daemon/pages.h"

#include "daemon/completion.h"
#include "daemon/http/pool.h"
#include "daemon/request_report.h"
#include "kvkeep/stats.h"
#include "kvkeep/version.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json slots_of(const Door& door) {
  Json slots = Json::array();
  if (door.gate == nullptr) return slots;
  for (const SlotContent& slot : door.gate->slots()) {
    slots.push_back({{"reserved", slot.is_reserved},
                     {"being_saved", slot.is_being_saved},
                     {"tokens", slot.tokens.size()}});
  }
  return slots;
}

// Each reason that was counted, in a sentence.
Json explanations(const Door& door) {
  Json all = Json::object();
  for (const auto& [reason, count] : door.tally.reasons) all[reason] = explain_reason(door, reason);
  return all;
}

Json store_of(const Door& door) {
  Json store{{"dir", door.settings.dir.string()},
             {"max_size_bytes", door.settings.max_size},
             {"block_size", door.settings.block_size}};
  if (door.store == nullptr) return store;
  const CacheStats stats = door.store->cache().stats();
  store["used_bytes"] = stats.total_size_bytes;
  // Less than what was asked for where the disk is nearly full.
  store["limit_bytes"] = stats.max_size_bytes;
  store["used_share"] = stats.utilization();
  store["blocks"] = stats.num_blocks;
  const PromptStore& prompts = *door.store;
  store["keeps_whole_slots"] = prompts.is_whole();
  store["bytes_per_token"] = prompts.is_whole() ? prompts.file_bytes(2) - prompts.file_bytes(1)
                                                : llama::bytes_per_token(prompts.identity().layout);
  store["cache"] = Json::parse(to_json(stats), nullptr, false);
  store["prefixes"] = Json::parse(to_json(door.store->prefix_stats()), nullptr, false);
  return store;
}

// What kind of completion a body is for, by what it has.
Route route_of_body(const std::string& body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Route::kNone;
  if (json.contains("messages")) return Route::kChat;
  if (json.contains("input")) return Route::kResponses;
  return json.contains("prompt") ? Route::kCompletion : Route::kNone;
}

// A prompt that is stored nowhere in this namespace may be in another.
void add_elsewhere(const PromptStore& store, std::span<const uint32_t> tokens, Json& out) {
  const std::optional<Elsewhere> found = store.find_elsewhere(tokens);
  if (!found.has_value()) return;
  Json differences = Json::array();
  for (const FieldDifference& difference : found->differences) {
    differences.push_back({{"name", difference.name},
                           {"stored", difference.stored.value_or("")},
                           {"asked", difference.asked.value_or("")}});
  }
  if (!found->differences.empty()) out["reason"] = found->differences.front().name;
  out["text"] = found->text;
  out["differences"] = differences;
}

Async<OwnAnswer> why(Door& door, std::string body) {
  if (!door.is_ready()) {
    co_return OwnAnswer{http::status::ok, "application/json",
                        dump({{"covered_tokens", 0},
                              {"reason", door.uncached.reason},
                              {"text", door.uncached.text}})};
  }
  const Route route = route_of_body(body);
  if (route == Route::kNone) {
    co_return error_answer(http::status::bad_request,
                           "this is no completion: send the body of one, with prompt, messages or "
                           "input");
  }
  const CompletionRequest request = read_completion_request(route, body, door.cache_prompt);
  if (request.uncached.has_value()) {
    co_return OwnAnswer{http::status::ok, "application/json",
                        dump({{"covered_tokens", 0},
                              {"reason", *request.uncached},
                              {"text", explain_reason(*request.uncached)}})};
  }
  const std::shared_ptr<PromptStore> store = door.store;
  const Result<std::vector<uint32_t>> tokens = co_await tokens_of(door.api, request);
  if (!tokens.ok()) {
    co_return error_answer(http::status::bad_gateway, tokens.status().message());
  }
  const Result<PrefixMatch> match = store->match(*tokens, request.salt);
  if (!match.ok()) co_return error_answer(http::status::bad_request, match.status().message());
  Json out{{"tokens", tokens->size()},
           {"covered_tokens", match->tokens},
           {"blocks", match->blocks.size()},
           {"block_size", store->settings().block_size},
           {"reason", match->end.has_value() ? std::string(name_of(*match->end)) : ""},
           {"text", match->text}};
  if (!match->end.has_value() && match->tokens == 0) {
    out["reason"] = "short";
    out["text"] = explain_reason("short");
  }
  if (match->tokens == 0 && request.salt.empty() && store->settings().salt.empty()) {
    // It reads the store's directory.
    const auto work = [&] {
      add_elsewhere(*store, *tokens, out);
      return true;
    };
    co_await on_pool(door.restoring, work);
  }
  co_return OwnAnswer{http::status::ok, "application/json", dump(out)};
}

OwnAnswer method_not_allowed(const char* allowed) {
  OwnAnswer answer = error_answer(http::status::method_not_allowed,
                                  std::string("this page answers to ") + allowed);
  answer.headers = {{"allow", allowed}};
  return answer;
}

}  // namespace

bool is_own_page(std::string_view path) {
  return path == "/kvkeep" || path.substr(0, 8) == "/kvkeep/";
}

std::string stats_json(const Door& door) {
  const std::chrono::duration<double> up = std::chrono::steady_clock::now() - door.began;
  Json out{{"version", KVKEEP_VERSION},
           {"url", door.public_url},
           {"ready", door.is_ready()},
           {"uptime_seconds", up.count()},
           {"uncached",
            {{"reason", door.uncached.reason},
             {"text", door.uncached.text},
             {"digested_percent", door.digested_percent.load()}}},
           {"server",
            {{"build", door.props.build},
             {"model", door.props.model_path},
             {"slots", door.props.slots},
             {"slot_tokens", door.props.slot_tokens}}},
           {"slots", slots_of(door)},
           {"waiting", door.gate != nullptr ? door.gate->waiting() : 0},
           {"requests_running", door.requests_running},
           {"saves_running", door.saves_running},
           {"restores", door.economics.explain()},
           {"requests", door.tally.to_json()},
           {"reason_texts", explanations(door)}};
  if (door.store != nullptr) {
    const auto threshold =
        door.economics.threshold_tokens(door.store->file_bytes(2) - door.store->file_bytes(1));
    if (threshold.has_value()) out["restore_from_tokens"] = *threshold;
  }
  out["store"] = store_of(door);
  return dump(out);
}

Async<OwnAnswer> own_page(Door& door, std::string path, std::string method, std::string body) {
  const bool reads = method == "GET" || method == "HEAD";
  if (path == "/kvkeep/why") {
    if (method != "POST") co_return method_not_allowed("POST");
    co_return co_await why(door, std::move(body));
  }
  if (!reads) co_return method_not_allowed("GET");
  if (path == "/kvkeep/stats") {
    co_return OwnAnswer{http::status::ok, "application/json", stats_json(door)};
  }
  if (path == "/kvkeep/metrics") {
    std::string text = door.tally.to_prometheus();
    if (door.store != nullptr) text += to_prometheus(door.store->cache().stats());
    co_return OwnAnswer{http::status::ok, "text/plain; version=0.0.4", std::move(text)};
  }
  if (path == "/kvkeep") {
    // The page asks for what stands beside it. The prefix of the server is before this path.
    OwnAnswer answer{http::status::permanent_redirect, "text/plain", "see kvkeep/\n"};
    answer.headers = {{"location", "kvkeep/"}};
    co_return answer;
  }
  if (path == "/kvkeep/") {
    const Headers headers{{"content-security-policy",
                           "default-src 'none'; style-src 'unsafe-inline'; script-src "
                           "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
                           "form-action 'none'; frame-ancestors 'none'"}};
    co_return OwnAnswer{http::status::ok, "text/html; charset=utf-8", std::string(status_page()),
                        headers};
  }
  co_return error_answer(http::status::not_found,
                         path +
                             ": there are /kvkeep/, /kvkeep/stats, /kvkeep/metrics and "
                             "/kvkeep/why");
}

}  // namespace kvkeep::daemon
