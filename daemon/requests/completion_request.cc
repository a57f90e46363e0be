#include "daemon/requests/completion_request.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "daemon/requests/chat_form.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

// Far beyond any prompt with tools. Values nested deeper could not be copied or written without end
// of the stack.
constexpr size_t kDepthMax = 256;

bool is_nested_too_deep(std::string_view json) {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

// The object with one more member, which is the last.
std::string with_member(std::string_view object, const std::string& name_and_value) {
  const size_t end = object.rfind('}');
  if (end == std::string_view::npos) return std::string(object);
  const size_t before = object.substr(0, end).find_last_not_of(" \t\r\n");
  const bool empty = before == std::string_view::npos || object[before] == '{';
  std::string out(object.substr(0, end));
  out += (empty ? "" : ",") + name_and_value;
  out += object.substr(end);
  return out;
}

bool exceeds(const Json& body, const char* name, double limit) {
  const Json* const value = member(body, name);
  return value != nullptr && value->is_number() && value->get<double>() > limit;
}

bool is_true(const Json& body, const char* name, bool otherwise) {
  const Json* const value = member(body, name);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

std::optional<int64_t> slot_of(const Json& body) {
  const Json* const value = member(body, "id_slot");
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double number = value->get<double>();  // The server takes 1.0 for 1.
  if (!(number >= 0 && number <= std::numeric_limits<int32_t>::max())) return std::nullopt;
  return static_cast<int64_t>(number);
}

// What the request asks for beside its prompt that a cache cannot give.
const char* setting_obstacle(const Json& body, bool cache_prompt_default) {
  if (!is_true(body, "cache_prompt", cache_prompt_default)) return "cache_prompt";
  if (member(body, "lora") != nullptr) return "lora";
  if (exceeds(body, "n_cache_reuse", 0)) return "cache_reuse";
  if (exceeds(body, "n", 1) || exceeds(body, "n_cmpl", 1)) return "several_prompts";
  const Json* const images = member(body, "image_data");
  const bool has_images = images != nullptr && !images->empty();
  if (has_images || member(body, "multimodal_data") != nullptr) return "images";
  return nullptr;
}

// An array of numbers, as token ids.
const char* take_tokens(const Json& ids, CompletionRequest* request) {
  std::vector<uint32_t> tokens;
  tokens.reserve(ids.size());
  for (const Json& id : ids) {
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMost) return "mixed_prompt";
    tokens.push_back(id.get<uint32_t>());
  }
  if (tokens.empty()) return "no_prompt";
  request->tokens = std::move(tokens);
  return nullptr;
}

bool contains_numbers(const Json& array) {
  for (const Json& value : array) {
    if (value.is_number()) return true;
  }
  return false;
}

const char* take_one_prompt(const Json& prompt, CompletionRequest* request) {
  if (prompt.is_object()) return "images";
  if (prompt.is_array()) return take_tokens(prompt, request);
  if (!prompt.is_string()) return "mixed_prompt";
  request->text = prompt.get<std::string>();
  return request->text->empty() ? "no_prompt" : nullptr;
}

const char* take_prompt(const Json& body, CompletionRequest* request) {
  const Json* const prompt = member(body, "prompt");
  if (prompt == nullptr) return "no_prompt";
  // An array without numbers is a list of prompts.
  if (!prompt->is_array() || contains_numbers(*prompt)) return take_one_prompt(*prompt, request);
  if (prompt->empty()) return "no_prompt";
  return prompt->size() > 1 ? "several_prompts" : take_one_prompt(prompt->front(), request);
}

const char* take_chat_form(const ChatForm& chat, CompletionRequest* request) {
  if (const auto* const obstacle = std::get_if<const char*>(&chat)) return *obstacle;
  request->template_body =
      std::get<Json>(chat).dump(-1, ' ', false, Json::error_handler_t::replace);
  return nullptr;
}

const char* take_by_route(const Json& body, std::string_view text, CompletionRequest* request) {
  switch (request->route) {
    case Route::kCompletion:
      return take_prompt(body, request);
    case Route::kMessages:
      return take_chat_form(chat_of_messages(body), request);
    case Route::kResponses:
      return take_chat_form(chat_of_responses(body), request);
    case Route::kInfill:
      return "infill";
    case Route::kChat:
      break;
    case Route::kNone:
      return "no_prompt";
  }
  const char* const obstacle = chat_obstacle(body);
  if (obstacle == nullptr) request->template_body = with_member(text, "\"stream\":false");
  return obstacle;
}

// The obstacle, if there is one.
const char* take(const Json& body, std::string_view text, bool cache_prompt_default,
                 CompletionRequest* request) {
  const Json* const salt = member(body, "cache_salt");
  if (salt != nullptr && !salt->is_string()) return "cache_salt";
  request->salt = text_of(salt);
  // The server hands none of the others on from /v1/messages.
  const Json none = Json::object();
  const Json& settings = request->honours_id_slot ? body : none;
  if (const char* const obstacle = setting_obstacle(settings, cache_prompt_default)) {
    return obstacle;
  }
  return take_by_route(body, text, request);
}

}  // namespace

Route route_of(std::string_view method, std::string_view path) {
  struct Path {
    std::string_view path;
    Route route;
  };
  constexpr Path kPaths[] = {
      {"/completion", Route::kCompletion},
      {"/completions", Route::kCompletion},
      {"/v1/completions", Route::kCompletion},
      {"/chat/completions", Route::kChat},
      {"/v1/chat/completions", Route::kChat},
      {"/v1/messages", Route::kMessages},
      {"/responses", Route::kResponses},
      {"/v1/responses", Route::kResponses},
      {"/infill", Route::kInfill},
  };
  if (method != "POST") return Route::kNone;
  for (const Path& known : kPaths) {
    if (path == known.path) return known.route;
  }
  return Route::kNone;
}

CompletionRequest read_completion_request(Route route, std::string_view body,
                                          bool cache_prompt_default) {
  CompletionRequest request;
  request.route = route;
  request.honours_id_slot = route != Route::kMessages;
  const Json json = is_nested_too_deep(body) ? Json() : Json::parse(body, nullptr, false);
  if (!json.is_object()) {
    request.uncached = "not_json";
    return request;
  }
  request.stream = is_true(json, "stream", false);
  request.id_slot = slot_of(json);
  if (const char* const obstacle = take(json, body, cache_prompt_default, &request)) {
    request.uncached = obstacle;
    request.text.reset();
  }
  return request;
}

std::string with_slot(std::string_view body, uint32_t slot) {
  return with_member(body, "\"id_slot\":" + std::to_string(slot));
}

}  // namespace kvkeep::daemon
