#include "daemon/requests/chat_form.h"

#include "daemon/requests/chat_part.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

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

bool is_media(std::string_view type) {
  return is_one_of(type, {"image", "input_image", "input_audio", "input_file"});
}

Json text_part(const Json& text) { return {{"type", "text"}, {"text", text}}; }

const char* take_text_part(const Json& part, std::initializer_list<std::string_view> types,
                           Json* parts) {
  if (!part.is_object()) return kTemplate;
  const std::string type = text_of(member(part, "type"));
  if (is_media(type)) return kImages;
  const Json* const text = member(part, "text");
  if (!is_one_of(type, types) || text == nullptr || !text->is_string()) return kTemplate;
  parts->push_back(text_part(*text));
  return nullptr;
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
