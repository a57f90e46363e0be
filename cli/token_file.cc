#include "cli/token_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace kvkeep::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownMax = 40;

Status wrong_token(size_t index, const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "…";
  return Status(Code::kInvalidArgument,
                "tokens[" + std::to_string(index) + "]: " + text +
                    " is no token id (write a whole number from 0 to 4294967295)");
}

Result<std::string> read_all(std::istream& in, const std::string& name) {
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return Status(Code::kUnavailable, name + ": cannot be read");
  return text;
}

Result<std::string> read_file(const std::string& name) {
  errno = 0;
  std::ifstream in(name, std::ios::binary);
  if (in) return read_all(in, name);
  const Code code = errno == ENOENT ? Code::kNotFound : Code::kUnavailable;
  return Status(code, name + ": " + std::strerror(errno));
}

}  // namespace

Result<std::vector<uint32_t>> parse_tokens(std::string_view json) {
  const Json values = Json::parse(json, nullptr, false);
  if (!values.is_array()) {
    return Status(Code::kInvalidArgument, "tokens: not a JSON array (write [1, 2, 3])");
  }
  std::vector<uint32_t> tokens;
  tokens.reserve(values.size());
  for (const Json& value : values) {
    const bool fits =
        value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<uint32_t>::max();
    if (!fits) return wrong_token(tokens.size(), value);
    tokens.push_back(value.get<uint32_t>());
  }
  return tokens;
}

Result<std::vector<uint32_t>> read_tokens(const std::string& file) {
  KVKEEP_TRY_ASSIGN(const std::string text,
                    file == "-" ? read_all(std::cin, "standard input") : read_file(file));
  return parse_tokens(text);
}

}  // namespace kvkeep::cli
