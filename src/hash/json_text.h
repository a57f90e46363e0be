// Writes the JSON that block files hold, byte for byte as the contract fixes it (docs/contract.md
// B.5, B.6): ASCII only, everything else escaped, doubles with the shortest digits that round-trip.
//
// Each function appends to `out`, or returns false and appends nothing.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvkeep {

enum class JsonStyle : uint8_t {
  kCompact,  // "," and ":"
  kSpaced,   // ", " and ": "
};

std::string_view item_separator(JsonStyle style);

// Quoted and escaped. False if `text` is not UTF-8.
[[nodiscard]] bool append_json_string(std::string& out, std::string_view text);

// Always with a fraction or an exponent: 6.0, 1e+16, 1e-05. False for NaN and infinities.
[[nodiscard]] bool append_json_double(std::string& out, double value);

// An array of strings. False if one is not UTF-8.
[[nodiscard]] bool append_json_strings(std::string& out, std::span<const std::string> items,
                                       JsonStyle style);

}  // namespace kvkeep
