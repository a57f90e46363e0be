#include "daemon/http/server_api.h"

#include <algorithm>

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::json;

constexpr auto kConnect = std::chrono::seconds(10);
constexpr auto kShort = std::chrono::seconds(60);
// Work of a slot that is under way comes first, and that may be a long prefill.
constexpr auto kLong = std::chrono::seconds(600);
constexpr uint64_t kMaxAnswer = 256 << 20;  // Bytes; the tokens of a prompt are the longest.

constexpr double kMostNumber = 1e15;
constexpr uint64_t kMostSlots = 1 << 16;

// Member `name` of an object, or `otherwise` if it is not there or of another type.
template <class T>
T member(const Json& json, const char* name, T otherwise) {
  const auto at = json.is_object() ? json.find(name) : json.end();
  if (at == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return at->is_string() ? at->get<std::string>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return at->is_boolean() ? at->get<bool>() : otherwise;
  } else {
    // Beyond this, numbers have no exact double, and none of ours is that large.
    return at->is_number() && *at >= 0 && *at < kMostNumber ? at->get<T>() : otherwise;
  }
}

// The message of llama-server's {"error": {"message": …}}.
std::string error_text(const Json& json) {
  if (!json.is_object() || !json.contains("error")) return "no reason given";
  return member<std::string>(json["error"], "message", "no reason given");
}

Status unavailable(const ServerAddress& address, const std::string& why) {
  return Status(Code::kUnavailable, "llama-server at " + address.host + ":" +
                                        std::to_string(address.port) + ": " + why);
}

}  // namespace

Async<Result<Socket>> connect_to(const ServerAddress& address) {
  const net::any_io_executor io = co_await net::this_coro::executor;
  ErrorCode error;
  std::vector<net::ip::tcp::endpoint> endpoints;
  const net::ip::address numeric = net::ip::make_address(address.host, error);
  if (!error) {
    endpoints.emplace_back(numeric, address.port);
  } else {
    net::ip::tcp::resolver resolver(io);
    const std::string port = std::to_string(address.port);
    const auto found = co_await resolver.async_resolve(address.host, port, into(error));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  for (const net::ip::tcp::endpoint& endpoint : endpoints) {
    Stream stream(io);
    stream.expires_after(kConnect);
    co_await stream.async_connect(Stream::endpoint_type(endpoint), into(error));
    if (error) continue;
    Socket socket = stream.release_socket();
    const net::ip::tcp::no_delay at_once(true);
    socket.set_option(at_once, error);
    co_return std::move(socket);
  }
  co_return unavailable(address, error.message());
}

ServerApi::ServerApi(net::any_io_executor io, ServerAddress address)
    : io_(std::move(io)), address_(std::move(address)) {}

Async<Result<Json>> ServerApi::call(http::verb verb, std::string path, std::string body,
                                    std::chrono::seconds limit) {
  Result<Socket> socket = co_await connect_to(address_);
  if (!socket.ok()) co_return socket.status();
  Stream stream(*std::move(socket));
  stream.expires_after(limit);

  http::request<http::string_body> request(verb, address_.prefix + path, 11);
  request.set(http::field::host, address_.host + ":" + std::to_string(address_.port));
  request.set(http::field::connection, "close");
  if (!address_.api_key.empty()) {
    request.set(http::field::authorization, "Bearer " + address_.api_key);
  }
  if (verb == http::verb::post) request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  ErrorCode error;
  co_await http::async_write(stream, request, into(error));
  if (error) co_return unavailable(address_, error.message());

  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxAnswer);
  co_await http::async_read(stream, buffer, parser, into(error));
  if (error) co_return unavailable(address_, path + ": " + error.message());
  Json json = Json::parse(parser.get().body(), nullptr, false);
  const unsigned status = parser.get().result_int();
  if (status / 100 != 2) {
    co_return Status(Code::kFailedPrecondition,
                     path + ": HTTP " + std::to_string(status) + ": " + error_text(json));
  }
  if (json.is_discarded()) co_return Status(Code::kDataLoss, path + ": the answer is not JSON");
  co_return json;
}

Async<bool> ServerApi::is_healthy() {
  const Result<Json> answer = co_await call(http::verb::get, "/health", "", kShort);
  co_return answer.ok();
}

Async<Result<ServerProps>> ServerApi::props() {
  const Result<Json> answer = co_await call(http::verb::get, "/props", "", kShort);
  if (!answer.ok()) co_return answer.status();
  ServerProps props;
  const auto slots = member<uint64_t>(*answer, "total_slots", 0);
  if (slots <= kMostSlots) props.slots = static_cast<uint32_t>(slots);
  if (answer->is_object() && answer->contains("default_generation_settings")) {
    props.slot_tokens = member<uint64_t>((*answer)["default_generation_settings"], "n_ctx", 0);
  }
  props.build = member<std::string>(*answer, "build_info", "");
  props.model_path = member<std::string>(*answer, "model_path", "");
  props.model_alias = member<std::string>(*answer, "model_alias", "");
  co_return props;
}

Async<std::string> ServerApi::adapters() {
  const Result<Json> answer = co_await call(http::verb::get, "/lora-adapters", "", kShort);
  co_return answer.ok() && answer->is_array() ? answer->dump() : "[]";
}

Async<Result<std::string>> ServerApi::apply_template(std::string body) {
  Result<Json> answer = co_await call(http::verb::post, "/apply-template", std::move(body), kShort);
  if (!answer.ok()) co_return answer.status();
  if (!answer->is_object() || !answer->contains("prompt") || !(*answer)["prompt"].is_string()) {
    co_return Status(Code::kDataLoss, "/apply-template: the answer has no prompt");
  }
  co_return (*answer)["prompt"].get<std::string>();
}

Async<Result<std::vector<uint32_t>>> ServerApi::tokenize(std::string text) {
  Json question{{"add_special", true}, {"parse_special", true}};
  question["content"] = std::move(text);
  std::string body = question.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Result<Json> answer = co_await call(http::verb::post, "/tokenize", std::move(body), kShort);
  if (!answer.ok()) co_return answer.status();
  const Status nonsense(Code::kDataLoss, "/tokenize: the answer has no list of tokens");
  if (!answer->is_object() || !answer->contains("tokens")) co_return nonsense;
  const Json& list = (*answer)["tokens"];
  if (!list.is_array()) co_return nonsense;
  std::vector<uint32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& token : list) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() > INT32_MAX) co_return nonsense;
    tokens.push_back(token.get<uint32_t>());
  }
  co_return tokens;
}

Async<Result<SlotAction>> ServerApi::slot_action(uint32_t slot, std::string action,
                                                 std::string filename) {
  std::string path = "/slots/" + std::to_string(slot) + "?action=" + action;
  std::string body = filename.empty() ? "{}" : Json{{"filename", filename}}.dump();
  const Result<Json> answer =
      co_await call(http::verb::post, std::move(path), std::move(body), kLong);
  if (!answer.ok()) co_return answer.status();
  const bool saved = action == "save";
  SlotAction done;
  done.tokens = member<uint64_t>(*answer, saved ? "n_saved" : "n_restored", 0);
  done.bytes = member<uint64_t>(*answer, saved ? "n_written" : "n_read", 0);
  if (answer->is_object() && answer->contains("timings")) {
    done.milliseconds = member<double>((*answer)["timings"], saved ? "save_ms" : "restore_ms", 0);
  }
  co_return done;
}

Async<Result<SlotAction>> ServerApi::save_slot(uint32_t slot, std::string filename) {
  co_return co_await slot_action(slot, "save", std::move(filename));
}

Async<Result<SlotAction>> ServerApi::restore_slot(uint32_t slot, std::string filename) {
  co_return co_await slot_action(slot, "restore", std::move(filename));
}

Async<Status> ServerApi::erase_slot(uint32_t slot) {
  const Result<SlotAction> done = co_await slot_action(slot, "erase", "");
  co_return done.status();
}

Async<Status> ServerApi::prefill(uint32_t slot, std::vector<uint32_t> tokens) {
  const Json question{
      {"prompt", tokens}, {"n_predict", 0}, {"id_slot", slot}, {"cache_prompt", true}};
  const Result<Json> answer =
      co_await call(http::verb::post, "/completion", question.dump(), kLong);
  co_return answer.status();
}

}  // namespace kvkeep::daemon
