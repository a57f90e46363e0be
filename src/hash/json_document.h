// Foreign JSON, parsed by simdjson under a bound on nesting. Duplicate members are refused here,
// since the parser keeps them.
//
// Ownership: elements and strings that come out of a document live as long as it does, and no
// longer than its next parse(). Threads:   one thread at a time each.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace kvkeep {

class JsonDocument {
 public:
  // None if `text` is not one JSON value, nests deeper than `depth_max` arrays and objects, or
  // there is no memory for it. Whitespace around the value is accepted; an empty array or object
  // does not count as a level.
  std::optional<simdjson::dom::element> parse(std::string_view text, size_t depth_max);
  // True if the last parse() failed for want of memory.
  bool out_of_memory() const { return out_of_memory_; }
  // std::bad_alloc if it did: a lack of memory must not pass for malformed text.
  void require_memory() const;

 private:
  simdjson::dom::parser parser_;
  bool out_of_memory_ = false;
};

// No two members of the object share a name.
bool members_are_unique(simdjson::dom::object object);

// A finite number written as JSON writes it, blanks around it allowed ("3.5", " 6 ").
std::optional<double> parse_number(std::string_view text);

}  // namespace kvkeep
