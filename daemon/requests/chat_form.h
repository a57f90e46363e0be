// Requests of other forms as the chat request that llama-server makes of them, for its
// /apply-template, which knows only that one. A form that is not known to come out as the server's
// has no chat request: a prompt that is foreseen wrongly costs more than one that is not kept.
//
// Threads: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

namespace kvkeep::daemon {

// The chat request, or why there is none: "images", "no_prompt" or "template". Members are in the
// order of the request, since templates print tools as JSON.
using ChatForm = std::variant<nlohmann::ordered_json, const char*>;

// Of /v1/messages: `system`, `tools`, `tool_choice`, and `messages` of text, thinking, tool_use and
// tool_result.
ChatForm chat_of_messages(const nlohmann::ordered_json& body);

// Of /v1/responses: `instructions`, `tools` that are functions, and `input` of messages,
// function_call, function_call_output and reasoning.
ChatForm chat_of_responses(const nlohmann::ordered_json& body);

// Why the messages of a chat request are not for a cache, if they are not.
const char* chat_obstacle(const nlohmann::ordered_json& body);

// nullptr: there is none, or it is null.
const nlohmann::ordered_json* member(const nlohmann::ordered_json& object, const char* name);

// "" for what is no text.
std::string text_of(const nlohmann::ordered_json* value);

}  // namespace kvkeep::daemon
