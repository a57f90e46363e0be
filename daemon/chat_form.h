// Requests of other forms as the chat request that llama-server makes of them, for its
// /apply-template, which knows only that one.
//
// Threads: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

namespace kvkeep::daemon {

// The chat request, or why there is none: "images", "no_prompt" or "template".
using ChatForm = std::variant<nlohmann::ordered_json, const char*>;

// Of /v1/messages: `system` and `messages` of texts.
ChatForm chat_of_messages(const nlohmann::ordered_json& body);

// Of /v1/responses: `instructions` and `input` of texts.
ChatForm chat_of_responses(const nlohmann::ordered_json& body);

// Why the messages of a chat request are not for a cache, if they are not.
const char* chat_obstacle(const nlohmann::ordered_json& body);

// nullptr: there is none, or it is null.
const nlohmann::ordered_json* member(const nlohmann::ordered_json& object, const char* name);

// "" for what is no text.
std::string text_of(const nlohmann::ordered_json* value);

}  // namespace kvkeep::daemon
