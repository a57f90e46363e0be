#include "daemon/testing/fake_server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <iterator>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_writer.h"
#include "daemon/slots/slot_gate.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::json;
using Tcp = net::ip::tcp;

llama::SlotLayout layout_of(uint32_t slots) {
  llama::SlotLayout layout;
  layout.version = 2;
  layout.streams = slots;
  layout.layers = {{1, 6, 1, 4, 0, 0}, {1, 12, 1, 8, 0, 0}};
  return layout;
}

// Of keys (part 0) or values (1) of the last of these tokens.
std::byte state_byte(uint64_t tokens_hash, size_t layer, size_t part, uint64_t i) {
  const uint64_t mixed = (tokens_hash ^ (layer * 2 + part) << 40 ^ i << 48) * 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(mixed >> 56);
}

llama::SlotWriter begin(const llama::SlotLayout& layout, uint32_t slot,
                        std::span<const uint32_t> tokens, std::span<std::byte> out) {
  return *llama::SlotWriter::begin(layout, slot, tokens, out);
}

Tensor rows_of(const llama::TensorForm& form, std::span<const uint32_t> tokens, size_t layer,
               size_t part, uint64_t row_bytes) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  uint64_t hash = 0;
  for (const uint32_t token : tokens) {
    hash = (hash ^ token) * 0x100000001b3u + 1;
    for (uint64_t i = 0; i < row_bytes; ++i) bytes->push_back(state_byte(hash, layer, part, i));
  }
  return {form.dtype, form.shape, {bytes, *bytes}, {}};
}

std::string path_of(const std::string& target) { return target.substr(0, target.find('?')); }

std::string content_of(const Json& message) {
  const Json& content = message["content"];
  if (content.is_string()) return content.get<std::string>();
  std::string all;
  for (const Json& part : content) all += part["text"].get<std::string>();
  return all;
}

std::string apply_template(const Json& body) {
  std::string text;
  for (const Json& message : body["messages"]) {
    text += "<" + message["role"].get<std::string>() + ">" + content_of(message);
  }
  return text + "<assistant>";
}

Json error_of(unsigned status, const std::string& text) {
  return {{"error", {{"code", status}, {"message", text}, {"type", "invalid_request_error"}}}};
}

std::string head_of(unsigned status, const std::string& type) {
  return "HTTP/1.1 " + std::to_string(status) +
         " Whatever\r\nServer: fake\r\nContent-Type: " + type + "\r\n";
}

std::string event_of(char c) {
  return "data: " + Json{{"content", std::string(1, c)}}.dump() + "\n\n";
}

std::string chunk(const std::string& text) {
  char length[16];
  std::snprintf(length, sizeof length, "%zx\r\n", text.size());
  return length + text + "\r\n";
}

}  // namespace

struct FakeServer::Acceptor {
  explicit Acceptor(net::io_context& io)
      : acceptor(io, Tcp::endpoint(net::ip::address_v4::loopback(), 0)) {}
  Tcp::acceptor acceptor;
};

std::vector<uint32_t> byte_tokens(const std::string& text) {
  std::vector<uint32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

FakeServer::FakeServer(net::io_context& io, std::filesystem::path slot_dir, uint32_t slots)
    : layout(layout_of(slots)),
      io_(io),
      acceptor_(std::make_unique<Acceptor>(io)),
      slot_dir_(std::move(slot_dir)),
      slots_(slots) {
  net::co_spawn(io_, accept(), net::detached);
}

FakeServer::~FakeServer() = default;

ServerAddress FakeServer::address() const {
  ServerAddress address;
  address.port = acceptor_->acceptor.local_endpoint().port();
  return address;
}

std::vector<FakeServer::Request> FakeServer::requests_to(const std::string& path) const {
  std::vector<Request> found;
  for (const Request& request : requests) {
    if (path_of(request.target) == path) found.push_back(request);
  }
  return found;
}

void FakeServer::resume() {
  for (net::steady_timer* timer : std::exchange(holding_, {})) timer->cancel();
}

Async<void> FakeServer::hold(ClientWatch* watch) {
  net::steady_timer timer(io_, net::steady_timer::time_point::max());
  holding_.push_back(&timer);
  if (watch != nullptr) {
    watch->on_gone([this, &timer] {
      std::erase(holding_, &timer);
      timer.cancel();
    });
  }
  ErrorCode cancelled;
  co_await timer.async_wait(into(cancelled));
  if (watch != nullptr) watch->on_gone({});
}

Async<void> FakeServer::accept() {
  for (;;) {
    ErrorCode error;
    Tcp::socket socket = co_await acceptor_->acceptor.async_accept(into(error));
    if (error) co_return;
    net::co_spawn(io_, serve(Socket(std::move(socket))), net::detached);
  }
}

Async<void> FakeServer::serve(Socket socket) {
  beast::flat_buffer buffer;
  http::request_parser<http::string_body> parser;
  parser.body_limit(UINT64_MAX);
  ErrorCode error;
  co_await http::async_read_header(socket, buffer, parser, into(error));
  if (error) co_return;
  const std::string path = path_of(std::string(parser.get().target()));
  const auto script = scripts.find(path);
  const bool is_deaf = script != scripts.end() && script->second.before_body;
  if (!is_deaf) co_await http::async_read(socket, buffer, parser, into(error));
  if (error) co_return;
  Request request{std::string(parser.get().method_string()), std::string(parser.get().target())};
  for (const auto& header : parser.get()) {
    std::string name(header.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::tolower(c); });
    request.headers[name] = std::string(header.value());
  }
  request.body = parser.get().body();
  requests.push_back(request);
  if (script != scripts.end()) {
    Script played = script->second;
    co_await play(socket, std::move(played));
  } else {
    co_await answer(socket, std::move(request));
  }
}

Async<void> FakeServer::play(Socket& socket, Script script) {
  for (const std::string& piece : script.pieces) {
    if (piece == Script::kHold) {
      co_await hold(nullptr);
      continue;
    }
    ErrorCode error;
    co_await net::async_write(socket, net::buffer(piece), into(error));
    if (error) co_return;
  }
}

Async<void> FakeServer::reply(Socket& socket, unsigned status, Json body) {
  const std::string text = body.dump();
  const std::string whole = head_of(status, "application/json; charset=utf-8") +
                            "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  ErrorCode ignored;
  co_await net::async_write(socket, net::buffer(whole), into(ignored));
}

std::optional<Json> FakeServer::own_answer(const std::string& path, const Json& body) const {
  if (path == "/health") return Json{{"status", "ok"}};
  if (path == "/lora-adapters") return Json::array();
  if (path == "/props") {
    return Json{{"total_slots", slots_.size()},
                {"build_info", build},
                {"model_path", model_path},
                {"default_generation_settings", Json{{"n_ctx", slot_tokens}}}};
  }
  if (path == "/apply-template") return Json{{"prompt", apply_template(body)}};
  if (path == "/tokenize") {
    return Json{{"tokens", byte_tokens(body["content"].get<std::string>())}};
  }
  return std::nullopt;
}

Async<void> FakeServer::answer(Socket& socket, Request request) {
  const std::string path = path_of(request.target);
  if (path.rfind("/slots/", 0) == 0) co_return co_await act_on_slot(socket, std::move(request));
  const Json body = Json::parse(request.body, nullptr, false);
  if (request.method == "POST" && !body.is_object()) {
    Json error = error_of(400, "no JSON object");
    co_return co_await reply(socket, 400, std::move(error));
  }
  std::optional<Json> own = own_answer(path, body);
  if (own.has_value()) co_return co_await reply(socket, 200, *std::move(own));
  if (body.contains("prompt") || body.contains("messages")) {
    co_return co_await complete(socket, std::move(request));
  }
  Json error = error_of(404, "File Not Found");
  co_await reply(socket, 404, std::move(error));
}

std::vector<uint32_t> FakeServer::prompt_of(const Request& request, const Json& body) const {
  if (body.contains("messages")) {
    const bool more = messages_have_more && path_of(request.target) == "/v1/messages";
    return byte_tokens((more ? "!" : "") + apply_template(body));
  }
  const Json& prompt = body["prompt"];
  if (prompt.is_array()) return prompt.get<std::vector<uint32_t>>();
  return byte_tokens(prompt.get<std::string>());
}

uint32_t FakeServer::choose_slot(const Json& body, std::span<const uint32_t> prompt) const {
  if (body.contains("id_slot")) return body["id_slot"].get<uint32_t>() % slots_.size();
  uint32_t best = 0;
  for (uint32_t i = 1; i < slots_.size(); ++i) {
    const auto rank = [&](uint32_t slot) {
      const Slot& candidate = slots_[slot];
      return candidate.is_busy ? -1 : static_cast<int64_t>(common_prefix(candidate.tokens, prompt));
    };
    if (rank(i) > rank(best)) best = i;
  }
  return best;
}

Json FakeServer::generate(const Json& body, std::vector<uint32_t> tokens, Slot& slot) const {
  const uint64_t cached = std::min<uint64_t>(common_prefix(slot.tokens, tokens), tokens.size() - 1);
  const uint64_t computed = tokens.size() - cached;
  const uint64_t wanted = body.value("n_predict", predicted);
  std::string text;
  for (uint64_t i = 0; i < wanted; ++i) {
    text += static_cast<char>('a' + tokens.size() * 7 % 26);
    // The last one has no state yet.
    if (i + 1 < wanted) tokens.push_back(static_cast<unsigned char>(text.back()));
  }
  slot.tokens = std::move(tokens);
  return {{"content", text},
          {"id_slot", &slot - slots_.data()},
          {"timings",
           {{"cache_n", cached},
            {"prompt_n", computed},
            {"prompt_ms", static_cast<double>(computed) * ms_per_token},
            {"predicted_n", wanted}}}};
}

Async<void> FakeServer::complete(Socket& socket, Request request) {
  const Json body = Json::parse(request.body);
  std::vector<uint32_t> tokens = prompt_of(request, body);
  Slot& slot = slots_[choose_slot(body, tokens)];
  if (slot.is_busy) ++overlaps;
  slot.is_busy = true;
  if (holds_completions) {
    ClientWatch watch(socket);
    co_await hold(&watch);
    if (watch.is_gone()) {
      // Half of it was computed.
      ++left;
      tokens.resize((common_prefix(slot.tokens, tokens) + tokens.size()) / 2);
      slot = {std::move(tokens), false};
      co_return;
    }
  }
  slot.is_busy = false;
  Json last = generate(body, std::move(tokens), slot);
  if (path_of(request.target) == "/v1/messages") last.erase("timings");
  if (!body.value("stream", false)) co_return co_await reply(socket, 200, std::move(last));
  std::string whole = head_of(200, "text/event-stream") + "Transfer-Encoding: chunked\r\n\r\n";
  for (const char c : last["content"].get<std::string>()) {
    whole += chunk(event_of(c));
  }
  whole += chunk("data: " + last.dump() + "\n\n") + "0\r\n\r\n";
  ErrorCode ignored;
  co_await net::async_write(socket, net::buffer(whole), into(ignored));
}

std::vector<std::byte> FakeServer::slot_file(std::span<const uint32_t> tokens,
                                             uint32_t slot) const {
  std::vector<std::byte> file(llama::slot_file_bytes(layout, tokens.size()));
  LoadedBlock block;
  for (size_t layer = 0; layer < layout.layers.size(); ++layer) {
    const auto forms = llama::pair_forms(layout, layer, tokens.size());
    const llama::LayerRows& rows = layout.layers[layer];
    block.layers.push_back(make_pair_state(rows_of(forms[0], tokens, layer, 0, rows.k_row_bytes),
                                           rows_of(forms[1], tokens, layer, 1, rows.v_row_bytes)));
  }
  llama::SlotWriter writer = begin(layout, slot, tokens, file);
  if (!tokens.empty() && !writer.put(0, block, tokens.size()).ok()) return {};
  return file;
}

Status FakeServer::save(const std::filesystem::path& file, uint32_t slot) {
  const std::vector<std::byte> bytes = slot_file(slots_[slot].tokens, slot);
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  return out ? Status() : Status(Code::kUnavailable, "cannot be written");
}

Status FakeServer::restore(const std::filesystem::path& file, uint32_t slot) {
  slots_[slot].tokens.clear();
  if (refuses_restores) return Status(Code::kUnavailable, "Unable to restore slot");
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  const Result<llama::SlotFile> parsed = llama::parse_slot_file(bytes, nullptr);
  if (!parsed.ok()) return parsed.status();
  const std::vector<std::byte> right = slot_file(parsed->tokens, parsed->slot);
  if (!std::equal(right.begin(), right.end(), bytes.begin(), bytes.end())) ++wrong_files;
  slots_[slot].tokens = parsed->tokens;
  return Status();
}

std::pair<unsigned, Json> FakeServer::slot_answer(const Request& request) {
  const auto slot = static_cast<uint32_t>(request.target.at(7) - '0');
  if (slot >= slots_.size()) return {400, error_of(400, "no such slot")};
  if (slots_[slot].is_busy) ++overlaps;
  const std::string action = request.target.substr(request.target.find("action=") + 7);
  if (action == "erase") {
    slots_[slot].tokens.clear();
    return {200, {{"id_slot", slot}}};
  }
  const bool saves = action == "save";
  const std::string name = Json::parse(request.body)["filename"].get<std::string>();
  const Status done = saves ? save(slot_dir_ / name, slot) : restore(slot_dir_ / name, slot);
  if (!done.ok()) return {400, error_of(400, done.message())};
  const size_t tokens = slots_[slot].tokens.size();
  if (!saves && forgets_restores) slots_[slot].tokens.clear();
  Json answer{{"id_slot", slot}};
  answer[saves ? "n_saved" : "n_restored"] = tokens;
  answer["timings"][saves ? "save_ms" : "restore_ms"] = 1.0;
  return {200, answer};
}

Async<void> FakeServer::act_on_slot(Socket& socket, Request request) {
  auto [status, body] = slot_answer(request);
  co_await reply(socket, status, std::move(body));
}

}  // namespace kvkeep::daemon
