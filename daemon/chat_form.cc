#include "daemon/chat_form.h"

#include <initializer_list>
#include <string_view>

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kImages = "images";
constexpr const char* kNoPrompt = "no_prompt";
constexpr const char* kTemplate = "template";

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  for (const std::string_view candidate : words) {
    if (word == candidate) return true;
  }
  return false;
}

Json text_part(const Json& text) { return {{"type", "text"}, {"text", text}}; }

// Claude's clients begin with a line whose stamp differs in every request. The server blanks it, so
// that prompts stay alike.
std::string without_stamp(std::string text) {
  constexpr std::string_view kLine = "x-anthropic-billing-header:";
  constexpr std::string_view kStamp = "cch=";
  constexpr size_t kLength = 5;
  if (text.rfind(kLine, 0) != 0) return text;
  const size_t found = text.find(kStamp, kLine.size());
  if (found == std::string::npos) return text;
  const size_t begin = found + kStamp.size();
  const bool whole = begin + kLength < text.size() && text[begin + kLength] == ';';
  return whole ? text.replace(begin, kLength, kLength, 'f') : text;
}

// The text parts of `content` whose type is one of `types`, as the chat form has them.
ChatForm text_parts(const Json& content, std::initializer_list<std::string_view> types) {
  Json parts = Json::array();
  for (const Json& part : content) {
    if (!part.is_object()) return kTemplate;
    const std::string type = text_of(member(part, "type"));
    if (is_one_of(type, {"image", "input_image", "input_audio", "input_file"})) return kImages;
    const Json* const text = member(part, "text");
    if (!is_one_of(type, types) || text == nullptr || !text->is_string()) return kTemplate;
    parts.push_back(text_part(*text));
  }
  return parts;
}

// The message of `system`; null if there is none.
ChatForm system_message(const Json& body) {
  const Json* const system = member(body, "system");
  if (system == nullptr) return Json();
  std::string all;
  if (system->is_string()) {
    all = without_stamp(system->get<std::string>());
  } else if (system->is_array()) {
    const ChatForm parts = text_parts(*system, {"text"});
    if (const auto* const obstacle = std::get_if<const char*>(&parts)) return *obstacle;
    for (const Json& part : std::get<Json>(parts)) all += without_stamp(text_of(&part["text"]));
  } else {
    return kTemplate;
  }
  return Json{{"role", "system"}, {"content", all}};
}

// A message of /v1/messages; null for one that the server leaves out.
ChatForm plain_message(const Json& message) {
  const Json* const content = message.is_object() ? member(message, "content") : nullptr;
  const Json* const role = message.is_object() ? member(message, "role") : nullptr;
  if (content == nullptr || role == nullptr || !role->is_string()) return kTemplate;
  if (content->is_string()) return message;
  if (!content->is_array()) return kTemplate;
  ChatForm parts = text_parts(*content, {"text"});
  if (const auto* const obstacle = std::get_if<const char*>(&parts)) return *obstacle;
  if (std::get<Json>(parts).empty()) return Json();
  return Json{{"role", *role}, {"content", std::move(std::get<Json>(parts))}};
}

// What of a request to /v1/messages, beside its messages, its template may look at.
void take_template_fields(const Json& body, Json* chat) {
  if (const Json* const values = member(body, "chat_template_kwargs")) {
    (*chat)["chat_template_kwargs"] = *values;
  }
  const Json* const thinking = member(body, "thinking");
  if (thinking == nullptr || !thinking->is_object()) return;
  if (text_of(member(*thinking, "type")) != "enabled") return;
  constexpr int kServersBudget = 10000;
  const Json* const budget = member(*thinking, "budget_tokens");
  (*chat)["thinking_budget_tokens"] = budget != nullptr ? *budget : Json(kServersBudget);
}

bool has_tools(const Json& body) {
  const Json* const tools = member(body, "tools");
  return tools != nullptr && !(tools->is_array() && tools->empty());
}

// An item of a response's input as a message. Only what is known to have no other effect may stand
// beside role and content.
ChatForm item_message(const Json& item) {
  if (!item.is_object()) return kTemplate;
  for (const auto& [name, value] : item.items()) {
    if (!is_one_of(name, {"role", "content", "type", "status", "id"})) return kTemplate;
  }
  const std::string role = text_of(member(item, "role"));
  const std::string type = text_of(member(item, "type"));
  const bool assistant = role == "assistant" && type == "message";
  const bool known = assistant || is_one_of(role, {"user", "system", "developer"});
  if (!known || !is_one_of(type, {"", "message"})) return kTemplate;
  const Json* const content = member(item, "content");
  if (content == nullptr) return kTemplate;
  if (content->is_string()) {
    return Json{{"role", role}, {"content", Json::array({text_part(*content)})}};
  }
  if (!content->is_array()) return kTemplate;
  ChatForm parts = assistant ? text_parts(*content, {"output_text", "input_text"})
                             : text_parts(*content, {"input_text"});
  if (const auto* const obstacle = std::get_if<const char*>(&parts)) return *obstacle;
  return Json{{"role", role}, {"content", std::move(std::get<Json>(parts))}};
}

// Appends the messages of `input`. The obstacle, if there is one.
const char* take_input(const Json& input, Json* messages) {
  if (input.is_string()) {
    messages->push_back({{"role", "user"}, {"content", input}});
    return nullptr;
  }
  if (!input.is_array()) return kTemplate;
  for (const Json& item : input) {
    ChatForm message = item_message(item);
    if (const auto* const obstacle = std::get_if<const char*>(&message)) return *obstacle;
    // The server joins answers that follow one another, each version in its way.
    const Json& added = std::get<Json>(message);
    const bool answer = added["role"] == "assistant";
    if (answer && !messages->empty() && messages->back()["role"] == "assistant") return kTemplate;
    messages->push_back(added);
  }
  return nullptr;
}

const char* content_obstacle(const Json& content) {
  if (content.is_null() || content.is_string()) return nullptr;
  if (!content.is_array()) return kTemplate;
  for (const Json& part : content) {
    if (!part.is_object()) return kTemplate;
    if (text_of(member(part, "type")) != "text") return kImages;
  }
  return nullptr;
}

}  // namespace

ChatForm chat_of_messages(const Json& body) {
  const Json* const messages = member(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) return kNoPrompt;
  if (has_tools(body)) return kTemplate;
  Json chat{{"messages", Json::array()}};
  const ChatForm system = system_message(body);
  if (const auto* const obstacle = std::get_if<const char*>(&system)) return *obstacle;
  if (!std::get<Json>(system).is_null()) chat["messages"].push_back(std::get<Json>(system));
  for (const Json& message : *messages) {
    const ChatForm plain = plain_message(message);
    if (const auto* const obstacle = std::get_if<const char*>(&plain)) return *obstacle;
    if (!std::get<Json>(plain).is_null()) chat["messages"].push_back(std::get<Json>(plain));
  }
  take_template_fields(body, &chat);
  return chat;
}

ChatForm chat_of_responses(const Json& body) {
  const Json* const input = member(body, "input");
  if (input == nullptr || input->empty()) return kNoPrompt;
  if (has_tools(body) || !text_of(member(body, "previous_response_id")).empty()) return kTemplate;
  const Json* const reasoning = member(body, "reasoning");
  // Some servers hand the effort to the template, some do not.
  if (reasoning != nullptr && reasoning->contains("effort")) return kTemplate;

  Json messages = Json::array();
  if (body.contains("instructions")) {
    const Json& instructions = body["instructions"];
    if (!instructions.is_null() && !instructions.is_string()) return kTemplate;
    messages.push_back({{"role", "system"}, {"content", text_of(&instructions)}});
  }
  if (const char* const obstacle = take_input(*input, &messages)) return obstacle;

  Json chat = body;
  for (const char* name : {"input", "instructions", "tools", "reasoning", "stream"}) {
    chat.erase(name);
  }
  chat["messages"] = std::move(messages);
  return chat;
}

const char* chat_obstacle(const Json& body) {
  const Json* const messages = member(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) return kNoPrompt;
  for (const Json& message : *messages) {
    if (!message.is_object()) return kTemplate;
    const Json* const content = member(message, "content");
    const char* const obstacle = content != nullptr ? content_obstacle(*content) : nullptr;
    if (obstacle != nullptr) return obstacle;
  }
  return nullptr;
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace kvkeep::daemon
