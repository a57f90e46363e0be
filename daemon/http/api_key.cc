#include "daemon/http/api_key.h"

#include <openssl/crypto.h>

#include <boost/beast/core/detail/base64.hpp>

namespace kvkeep::daemon {
namespace {

// What follows "scheme " in an Authorization header; nothing for another scheme.
std::optional<std::string> credentials(beast::string_view header, beast::string_view scheme) {
  if (header.size() <= scheme.size() || header[scheme.size()] != ' ') return std::nullopt;
  if (!beast::iequals(header.substr(0, scheme.size()), scheme)) return std::nullopt;
  const beast::string_view rest = header.substr(scheme.size() + 1);
  return std::string(rest.data(), rest.size());
}

std::string password_of(const std::string& encoded) {
  namespace base64 = beast::detail::base64;
  std::string decoded(base64::decoded_size(encoded.size()), '\0');
  decoded.resize(base64::decode(decoded.data(), encoded.data(), encoded.size()).first);
  const size_t colon = decoded.find(':');
  return colon == std::string::npos ? "" : decoded.substr(colon + 1);
}

std::string key_of(const RequestHead& head) {
  const beast::string_view authorization = head[http::field::authorization];
  if (auto key = credentials(authorization, "Bearer")) return *std::move(key);
  if (auto basic = credentials(authorization, "Basic")) return password_of(*basic);
  const beast::string_view key = head["x-api-key"];
  return std::string(key.data(), key.size());
}

}  // namespace

bool has_api_key(const RequestHead& head, const std::vector<std::string>& keys) {
  if (keys.empty()) return true;
  const std::string given = key_of(head);
  bool found = false;
  for (const std::string& key : keys) {
    const bool same =
        key.size() == given.size() && CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0;
    found = found || same;
  }
  return found;
}

}  // namespace kvkeep::daemon
