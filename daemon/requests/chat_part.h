// What the forms of requests have in common: parts of a content, and why there is no chat request.
//
// Threads: pure functions.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kvkeep::daemon {

inline constexpr const char* kImages = "images";
inline constexpr const char* kNoPrompt = "no_prompt";
inline constexpr const char* kTemplate = "template";

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view candidate : words) {
    if (word == candidate) return true;
  }
  return false;
}

// Whether a part of this type shows or sounds.
bool is_media(std::string_view type);

// A text part of the chat form.
nlohmann::ordered_json text_part(const nlohmann::ordered_json& text);

// Appends the part, whose type must be one of `types`, to `parts`. The obstacle, if there is one.
const char* take_text_part(const nlohmann::ordered_json& part,
                           std::initializer_list<std::string_view> types,
                           nlohmann::ordered_json* parts);

}  // namespace kvkeep::daemon
