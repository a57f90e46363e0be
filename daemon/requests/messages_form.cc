#include <string>
#include <utility>

#include "daemon/requests/chat_form.h"
#include "daemon/requests/chat_part.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

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

// Appends the message of `system`. The obstacle, if there is one, as in all that follow.
const char* take_system(const Json& body, Json* messages) {
  const Json* const system = member(body, "system");
  if (system == nullptr) return nullptr;
  std::string all;
  if (system->is_string()) {
    all = without_stamp(system->get<std::string>());
  } else if (system->is_array()) {
    Json parts = Json::array();
    for (const Json& part : *system) {
      if (const char* const obstacle = take_text_part(part, {"text"}, &parts)) return obstacle;
      all += without_stamp(text_of(&parts.back()["text"]));
    }
  } else {
    return kTemplate;
  }
  messages->push_back({{"role", "system"}, {"content", all}});
  return nullptr;
}

// The parts of one message by what becomes of them.
struct Parts {
  Json texts = Json::array();
  Json calls = Json::array();
  Json results = Json::array();  // Messages of their own, after that of the others.
  std::string reasoning{};
};

// What the server has no eye for, in a message or in the result of a tool.
bool is_left_out(std::string_view type) {
  return is_one_of(type, {"redacted_thinking", "document", "search_result", "server_tool_use",
                          "web_search_tool_result", "tool_reference"});
}

const char* take_tool_use(const Json& part, Parts* parts) {
  const Json* const name = member(part, "name");
  if (name == nullptr || !name->is_string()) return kTemplate;
  const Json* const input = member(part, "input");
  const std::string arguments =
      input == nullptr ? "{}" : input->dump(-1, ' ', false, Json::error_handler_t::replace);
  parts->calls.push_back({{"id", text_of(member(part, "id"))},
                          {"type", "function"},
                          {"function", {{"name", *name}, {"arguments", arguments}}}});
  return nullptr;
}

const char* take_tool_result(const Json& part, Parts* parts) {
  const Json* const content = member(part, "content");
  std::string all;
  if (content != nullptr && content->is_array()) {
    Json texts = Json::array();
    for (const Json& text : *content) {
      if (text.is_object() && is_left_out(text_of(member(text, "type")))) continue;
      if (const char* const obstacle = take_text_part(text, {"text"}, &texts)) return obstacle;
      all += text_of(&texts.back()["text"]);
    }
  } else if (content != nullptr && content->is_string()) {
    all = content->get<std::string>();
  } else if (content != nullptr) {
    return kTemplate;
  }
  parts->results.push_back(
      {{"role", "tool"}, {"tool_call_id", text_of(member(part, "tool_use_id"))}, {"content", all}});
  return nullptr;
}

const char* take_part(const Json& part, Parts* parts) {
  if (!part.is_object()) return kTemplate;
  const std::string type = text_of(member(part, "type"));
  if (type == "tool_use") return take_tool_use(part, parts);
  if (type == "tool_result") return take_tool_result(part, parts);
  if (type == "thinking") {
    parts->reasoning += text_of(member(part, "thinking"));
    return nullptr;
  }
  if (is_left_out(type)) return nullptr;
  return take_text_part(part, {"text"}, &parts->texts);
}

const char* take_message(const Json& message, Json* messages) {
  const Json* const content = message.is_object() ? member(message, "content") : nullptr;
  const Json* const role = message.is_object() ? member(message, "role") : nullptr;
  if (content == nullptr || role == nullptr || !role->is_string()) return kTemplate;
  if (content->is_string()) {
    messages->push_back(message);
    return nullptr;
  }
  if (!content->is_array()) return kTemplate;
  Parts parts;
  for (const Json& part : *content) {
    if (const char* const obstacle = take_part(part, &parts)) return obstacle;
  }
  if (!parts.texts.empty() || !parts.calls.empty() || !parts.reasoning.empty()) {
    Json plain{{"role", *role}};
    plain["content"] = parts.texts.empty() ? Json("") : std::move(parts.texts);
    if (!parts.calls.empty()) plain["tool_calls"] = std::move(parts.calls);
    if (!parts.reasoning.empty()) plain["reasoning_content"] = std::move(parts.reasoning);
    messages->push_back(std::move(plain));
  }
  for (Json& result : parts.results) messages->push_back(std::move(result));
  return nullptr;
}

const char* take_tools(const Json& body, Json* chat) {
  const Json* const tools = member(body, "tools");
  if (tools == nullptr) return nullptr;
  if (!tools->is_array()) return kTemplate;
  Json functions = Json::array();
  for (const Json& tool : *tools) {
    const Json* const name = tool.is_object() ? member(tool, "name") : nullptr;
    if (name == nullptr || !name->is_string()) return kTemplate;
    const Json* const schema = member(tool, "input_schema");
    // Claude's own tools have a type and no schema.
    if (schema == nullptr && tool.contains("input_schema")) return kTemplate;
    functions.push_back({{"type", "function"},
                         {"function",
                          {{"name", *name},
                           {"description", text_of(member(tool, "description"))},
                           {"parameters", schema == nullptr ? Json::object() : *schema}}}});
  }
  if (!functions.empty()) (*chat)["tools"] = std::move(functions);
  const Json* const choice = member(body, "tool_choice");
  if (choice == nullptr || !choice->is_object()) return nullptr;
  const std::string type = text_of(member(*choice, "type"));
  if (type == "auto") (*chat)["tool_choice"] = "auto";
  if (is_one_of(type, {"any", "tool"})) (*chat)["tool_choice"] = "required";
  return nullptr;
}

// What of a request, beside its messages and tools, its template may look at.
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

}  // namespace

ChatForm chat_of_messages(const Json& body) {
  const Json* const messages = member(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) return kNoPrompt;
  Json chat{{"messages", Json::array()}};
  if (const char* const obstacle = take_system(body, &chat["messages"])) return obstacle;
  for (const Json& message : *messages) {
    if (const char* const obstacle = take_message(message, &chat["messages"])) return obstacle;
  }
  if (const char* const obstacle = take_tools(body, &chat)) return obstacle;
  take_template_fields(body, &chat);
  return chat;
}

}  // namespace kvkeep::daemon
