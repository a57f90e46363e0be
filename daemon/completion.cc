#include "daemon/completion.h"

#include "daemon/background.h"
#include "daemon/flight.h"
#include "daemon/requests/timings.h"
#include "daemon/slot_filling.h"
#include "daemon/slot_keeping.h"
#include "daemon/startup.h"

namespace kvkeep::daemon {
namespace {

// Why this request cannot be cached; empty if it can.
std::string why_uncached(Door& door, const CompletionRequest& request) {
  if (!door.is_ready()) return door.uncached.reason;
  if (request.uncached.has_value()) return *request.uncached;
  if (request.route == Route::kMessages && door.messages.take_pass()) return "template";
  if (request.route == Route::kResponses && door.responses.take_pass()) return "template";
  return "";
}

Headers headers_of(const RequestReport& report) {
  std::string reason = report.reason;
  // That what follows the cached tokens was never there is nothing to speak of.
  if (report.cached_tokens() > 0 && (reason.empty() || reason == "absent" || reason == "short")) {
    reason = report.restored_tokens > 0 ? "restored" : "live";
  }
  return {{"x-kvkeep-cached-tokens", std::to_string(report.cached_tokens())},
          {"x-kvkeep-reason", reason}};
}

// Everything that comes before the request goes to the server.
Async<void> prepare(Door& door, Flight& flight, ClientWatch& watch) {
  RequestReport& report = flight.report;
  if (!door.is_settled) co_await wait_until_settled(door);
  report.reason = why_uncached(door, flight.request);
  if (!report.reason.empty()) {
    co_await take_any_slot(door, flight, watch);
    co_return;
  }
  Result<std::vector<uint32_t>> tokens = co_await tokens_of(door.api, flight.request);
  if (!tokens.ok() || tokens->empty()) {
    // The server will say what is wrong with it.
    report.reason = "tokenize";
    co_return;
  }
  if (door.may_change && door.is_ready()) co_await is_same_server(door);
  if (watch.is_gone()) co_return;
  if (!door.is_ready()) {
    report.reason = door.uncached.reason;
    co_return;
  }
  flight.store = door.store;
  flight.tokens = *std::move(tokens);
  report.looked_up = true;
  report.prompt_tokens = flight.tokens.size();
  co_await fill_slot(door, flight, watch);
}

}  // namespace

OwnAnswer server_is_away(const Door& door, const std::string& why) {
  if (door.uncached.reason != "loading") return error_answer(http::status::bad_gateway, why);
  return error_answer(http::status::service_unavailable, "Loading model");
}

Async<Result<std::vector<uint32_t>>> tokens_of(ServerApi& api, const CompletionRequest& request) {
  if (request.tokens.has_value()) co_return *request.tokens;
  std::string text;
  if (request.text.has_value()) {
    text = *request.text;
  } else if (request.template_body.has_value()) {
    std::string body = *request.template_body;
    Result<std::string> prompt = co_await api.apply_template(std::move(body));
    if (!prompt.ok()) co_return prompt.status();
    text = *std::move(prompt);
  }
  Result<std::vector<uint32_t>> tokens = co_await api.tokenize(std::move(text));
  co_return tokens;
}

Async<bool> serve_completion(Door& door, ClientConnection& client, const RequestHead& head,
                             std::string body, Route route) {
  ClientWatch watch(client.stream.socket());
  Flight flight;
  flight.request = read_completion_request(route, body, door.cache_prompt);
  flight.report.route = route;
  const auto store_header = head.find("x-kvkeep-store");
  flight.may_store = store_header == head.end() || store_header->value() != "off";
  co_await prepare(door, flight, watch);

  Exchange exchange(door.api.address());
  ExchangeResult result;
  const bool asked = !watch.is_gone();
  if (!asked) {
    result.end = ExchangeResult::End::kClientLeft;
  } else {
    if (flight.slot.has_value() && flight.request.honours_id_slot) {
      body = with_slot(body, flight.slot->slot());
    }
    const Status sent = co_await exchange.send(head, std::move(body), watch);
    if (sent.ok()) {
      const Headers headers = headers_of(flight.report);
      result = co_await exchange.answer(client, head, headers, watch);
    } else if (exchange.client_left()) {
      result.end = ExchangeResult::End::kClientLeft;
    } else {
      result.end = ExchangeResult::End::kServerFailed;
      result.error = sent.message();
    }
  }
  const std::optional<Timings> timings = find_timings(result.tail);
  if (timings.has_value()) check_use(door, flight, *timings);
  finish_report(door, flight.report, result, timings);
  if (flight.slot.has_value()) {
    const bool answered =
        result.status / 100 == 2 || result.end == ExchangeResult::End::kClientLeft;
    if (!asked) {
      flight.slot->set_tokens(std::move(flight.held));
    } else if (answered && flight.store != nullptr && flight.may_store && door.is_ready()) {
      start(door.io, door.log, "storing a prompt", keep_slot(door, std::move(flight), timings));
    } else {
      flight.slot->set_tokens(known_content(flight, timings));
    }
  }
  if (result.end == ExchangeResult::End::kServerFailed && result.status == 0) {
    OwnAnswer sorry = server_is_away(door, result.error);
    co_return co_await send_own(client, head, std::move(sorry));
  }
  co_return result.keep_alive;
}

}  // namespace kvkeep::daemon
