#include <string>
#include <utility>

#include "daemon/requests/chat_form.h"
#include "daemon/requests/chat_part.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

bool has_text(const Json& item, const char* name) {
  const Json* const value = member(item, name);
  return value != nullptr && value->is_string();
}

// The message before, if what an answer consists of is to be joined to it.
Json* open_answer(Json* messages) {
  if (messages->empty() || text_of(member(messages->back(), "role")) != "assistant") return nullptr;
  return &messages->back();
}

// Appends the parts of `content`. The obstacle, if there is one, as in all that follow.
const char* take_content(const Json& content, bool answer, Json* parts) {
  if (content.is_string()) {
    parts->push_back(text_part(content));
    return nullptr;
  }
  if (!content.is_array()) return kTemplate;
  for (const Json& part : content) {
    const char* const obstacle = answer ? take_text_part(part, {"output_text", "input_text"}, parts)
                                        : take_text_part(part, {"input_text"}, parts);
    if (obstacle != nullptr) return obstacle;
  }
  return nullptr;
}

const char* take_message(const Json& item, const std::string& type, Json* messages) {
  const std::string role = text_of(member(item, "role"));
  const bool answer = role == "assistant" && type == "message";
  const bool known = answer || is_one_of(role, {"user", "system", "developer"});
  const Json* const content = member(item, "content");
  if (!known || content == nullptr) return kTemplate;
  Json parts = Json::array();
  if (const char* const obstacle = take_content(*content, answer, &parts)) return obstacle;
  if (Json* const open = answer ? open_answer(messages) : nullptr) {
    Json& joined = (*open)["content"];
    if (!joined.is_array()) joined = Json::array();
    for (Json& part : parts) joined.push_back(std::move(part));
    return nullptr;
  }
  Json message = item;
  message.erase("type");
  message.erase("status");
  message["content"] = std::move(parts);
  messages->push_back(std::move(message));
  return nullptr;
}

const char* take_call(const Json& item, Json* messages) {
  if (!has_text(item, "arguments") || !has_text(item, "call_id") || !has_text(item, "name")) {
    return kTemplate;
  }
  Json call{{"function", {{"arguments", item["arguments"]}, {"name", item["name"]}}},
            {"id", item["call_id"]},
            {"type", "function"}};
  if (Json* const answer = open_answer(messages)) {
    if (!answer->contains("tool_calls")) (*answer)["tool_calls"] = Json::array();
    (*answer)["tool_calls"].push_back(std::move(call));
    return nullptr;
  }
  messages->push_back({{"role", "assistant"}, {"tool_calls", Json::array({std::move(call)})}});
  return nullptr;
}

const char* take_call_output(const Json& item, Json* messages) {
  const Json* const output = member(item, "output");
  if (!has_text(item, "call_id") || output == nullptr) return kTemplate;
  Json content = *output;
  if (output->is_array()) {
    content = Json::array();
    if (const char* const obstacle = take_content(*output, false, &content)) return obstacle;
  } else if (!output->is_string()) {
    return kTemplate;
  }
  messages->push_back(
      {{"content", std::move(content)}, {"role", "tool"}, {"tool_call_id", item["call_id"]}});
  return nullptr;
}

const char* take_reasoning(const Json& item, Json* messages) {
  const Json* const summary = member(item, "summary");
  const Json* const content = member(item, "content");
  if (summary == nullptr || !summary->is_array()) return kTemplate;
  if (content == nullptr || !content->is_array() || content->empty()) return kTemplate;
  const Json& first = content->front();
  if (!first.is_object() || !has_text(first, "text")) return kTemplate;
  if (Json* const answer = open_answer(messages)) {
    (*answer)["reasoning_content"] = first["text"];
    return nullptr;
  }
  messages->push_back(
      {{"role", "assistant"}, {"content", Json::array()}, {"reasoning_content", first["text"]}});
  return nullptr;
}

const char* take_item(const Json& item, Json* messages) {
  if (!item.is_object()) return kTemplate;
  const std::string type = text_of(member(item, "type"));
  if (is_one_of(type, {"", "message"})) return take_message(item, type, messages);
  // With a role or a content of its own the server would take it for a message.
  if (member(item, "role") != nullptr) return kTemplate;
  if (type == "function_call") return take_call(item, messages);
  if (type == "function_call_output") return take_call_output(item, messages);
  return type == "reasoning" ? take_reasoning(item, messages) : kTemplate;
}

const char* take_input(const Json& input, Json* messages) {
  if (input.is_string()) {
    messages->push_back({{"role", "user"}, {"content", input}});
    return nullptr;
  }
  if (!input.is_array()) return kTemplate;
  for (const Json& item : input) {
    if (const char* const obstacle = take_item(item, messages)) return obstacle;
  }
  return nullptr;
}

const char* take_tools(const Json& body, Json* chat) {
  const Json* const tools = member(body, "tools");
  if (tools == nullptr) return nullptr;
  if (!tools->is_array()) return kTemplate;
  Json functions = Json::array();
  for (const Json& tool : *tools) {
    if (!tool.is_object()) return kTemplate;
    // The server leaves out tools of other types, or refuses the request.
    if (text_of(member(tool, "type")) != "function") continue;
    Json function = tool;
    function.erase("type");
    if (!function.contains("strict")) function["strict"] = true;
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (!functions.empty()) (*chat)["tools"] = std::move(functions);
  return nullptr;
}

}  // namespace

ChatForm chat_of_responses(const Json& body) {
  const Json* const input = member(body, "input");
  if (input == nullptr || input->empty()) return kNoPrompt;
  if (!text_of(member(body, "previous_response_id")).empty()) return kTemplate;
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
  if (const char* const obstacle = take_tools(body, &chat)) return obstacle;
  // Older servers keep the effort to themselves. That shows only where the template looks at it,
  // and then in the first slot that is saved.
  const Json* const reasoning = member(body, "reasoning");
  if (reasoning != nullptr && reasoning->contains("effort")) {
    chat["reasoning_effort"] = (*reasoning)["effort"];
  }
  return chat;
}

}  // namespace kvkeep::daemon
