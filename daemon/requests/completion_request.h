// What a completion request to llama-server asks: its prompt, in a form that can be turned into
// tokens, and whether the prompt's state may be kept and restored at all.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvkeep::daemon {

enum class Route : uint8_t { kNone, kCompletion, kChat, kMessages, kResponses, kInfill };

// `path` is without the server's prefix and without a query. kNone: not a completion.
Route route_of(std::string_view method, std::string_view path);

struct CompletionRequest {
  Route route = Route::kNone;
  // Why the prompt is not for a cache; exactly one of tokens, text and template_body if it is.
  //   not_json         no JSON object, or one that is nested without end
  //   no_prompt        none, or an empty one
  //   several_prompts  more than one prompt or answer
  //   mixed_prompt     texts and ids in one prompt, or numbers that are no token ids
  //   images           or sound, or another content that is not text
  //   lora             adapters of its own
  //   cache_prompt     it asks for no cache
  //   cache_reuse      it asks for state that was computed at other positions
  //   cache_salt       one that is no text
  //   template         a form whose prompt only the server itself can tell
  //   infill           the same of /infill
  std::optional<std::string> uncached{};
  std::optional<std::vector<uint32_t>> tokens{};
  std::optional<std::string> text{};           // For /tokenize, add_special and parse_special.
  std::optional<std::string> template_body{};  // For /apply-template, which answers with a text.
  std::string salt{};                          // "cache_salt": who shares it may share prompts.
  std::optional<int64_t> id_slot{};            // Given and not negative.
  bool stream = false;
  bool honours_id_slot = true;  // The server has no eye for id_slot in /v1/messages.
};

// `cache_prompt_default`: what holds for a request that does not say.
CompletionRequest read_completion_request(Route route, std::string_view body,
                                          bool cache_prompt_default);

// The body, byte for byte, with "id_slot" as its last member, which counts where there are two.
// REQUIRES: a body whose request is not not_json.
std::string with_slot(std::string_view body, uint32_t slot);

}  // namespace kvkeep::daemon
