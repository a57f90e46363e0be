#include "disk/store_layout.h"

#include <charconv>

namespace kvkeep {
namespace {

constexpr std::string_view kBlockSuffix = ".safetensors";
constexpr std::string_view kSeedTempSuffix = "_tmp";
constexpr std::string_view kTempPrefix = ".kvkeep-";
constexpr std::string_view kTempSuffix = ".tmp";
constexpr std::string_view kOwnerPrefix = "owner-";
constexpr size_t kNonceChars = 16;

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kSubdirs) == std::string_view::npos;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (text.size() < suffix.size()) return false;
  if (text.substr(text.size() - suffix.size()) != suffix) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// A decimal as we print it: no sign, no leading zero.
std::optional<uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> temp_nonce(std::string_view name) {
  if (!take_prefix(name, kTempPrefix) || !take_suffix(name, kTempSuffix)) return std::nullopt;
  if (name.size() <= kNonceChars || name[kNonceChars] != '-') return std::nullopt;
  const std::string_view nonce = name.substr(0, kNonceChars);
  if (!is_nonce(nonce) || !parse_decimal(name.substr(kNonceChars + 1))) return std::nullopt;
  return std::string(nonce);
}

}  // namespace

std::string_view block_dir(const BlockHash& hash) {
  return kSubdirs.substr(std::to_integer<size_t>(hash.bytes()[0]) >> 4, 1);
}

std::string block_path(const BlockHash& hash) {
  return std::string(block_dir(hash)) + "/" + hash.to_hex() + std::string(kBlockSuffix);
}

std::string temp_path(const BlockHash& hash, std::string_view nonce, uint64_t sequence) {
  return std::string(block_dir(hash)) + "/" + std::string(kTempPrefix) + std::string(nonce) + "-" +
         std::to_string(sequence) + std::string(kTempSuffix);
}

bool is_subdir(std::string_view name) {
  return name.size() == 1 && kSubdirs.find(name[0]) != std::string_view::npos;
}

bool is_nonce(std::string_view text) { return text.size() == kNonceChars && is_hex(text); }

std::string owner_path(std::string_view nonce) {
  return std::string(kServiceDir) + "/" + std::string(kOwnerPrefix) + std::string(nonce);
}

std::optional<std::string> owner_nonce(std::string_view name) {
  if (!take_prefix(name, kOwnerPrefix) || !is_nonce(name)) return std::nullopt;
  return std::string(name);
}

bool is_owner_temp(std::string_view name) {
  return take_suffix(name, kTempSuffix) && owner_nonce(name).has_value();
}

std::string quarantine_path(const BlockHash& hash, uint64_t number) {
  return std::string(kQuarantineDir) + "/" + hash.to_hex() + "-" + std::to_string(number) +
         std::string(kBlockSuffix);
}

std::optional<uint64_t> quarantine_number(std::string_view name) {
  if (!take_suffix(name, kBlockSuffix)) return std::nullopt;
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos || !BlockHash::from_hex(name.substr(0, dash)).ok()) {
    return std::nullopt;
  }
  // Numbers count up from the highest one found, so one that leaves no room to count is not ours.
  const std::string_view number = name.substr(dash + 1);
  constexpr size_t kMaxDigits = 15;
  return number.size() <= kMaxDigits ? parse_decimal(number) : std::nullopt;
}

StoreName classify(std::string_view dir, std::string_view name) {
  if (!is_subdir(dir)) return {};
  if (std::optional<std::string> nonce = temp_nonce(name)) {
    return {NameKind::kTemp, std::nullopt, *std::move(nonce)};
  }
  if (!take_suffix(name, kBlockSuffix) || name.empty() || name[0] != dir[0]) return {};
  if (Result<BlockHash> hash = BlockHash::from_hex(name); hash.ok()) {
    return {NameKind::kBlock, *hash, {}};
  }
  if (take_suffix(name, kSeedTempSuffix) && is_hex(name)) {
    return {NameKind::kSeedTemp, std::nullopt, {}};
  }
  return {};
}

}  // namespace kvkeep
