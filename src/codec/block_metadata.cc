#include "codec/block_metadata.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "codec/digest.h"
#include "codec/meta_state.h"
#include "hash/json_document.h"
#include "hash/json_text.h"

namespace kvkeep {
namespace {

constexpr std::string_view kVersionKey = "omlx_cache_format_version";
constexpr std::string_view kProfileKey = "kvkeep_profile";
constexpr std::string_view kTokensKey = "kvkeep_tokens";
constexpr std::string_view kExtensionPrefix = "kvkeep_";

bool is_lower_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// 0 if the key is absent.
Result<uint32_t> read_count(const SafetensorsHeader& header, std::string_view key) {
  const std::string* text = header.value(key);
  if (text == nullptr) return 0u;
  uint32_t number = 0;
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return damaged("the value of " + std::string(key) + " is not a count");
  }
  return number;
}

std::string read_text(const SafetensorsHeader& header, std::string_view key) {
  const std::string* text = header.value(key);
  return text != nullptr ? *text : std::string();
}

Result<BlockHash> read_hash(std::string_view key, const std::string* hex) {
  if (hex == nullptr) return damaged("there is no " + std::string(key));
  auto hash = BlockHash::from_hex(*hex);
  if (!hash.ok()) return damaged("the value of " + std::string(key) + " is not a block hash");
  return hash;
}

Result<TokenDigest> read_token_digest(const std::string& hex) {
  TokenDigest digest;
  if (!is_sha256_hex(hex)) return damaged("the value of kvkeep_tokens is not a digest");
  KVKEEP_TRY_ASSIGN(const BlockHash bytes, BlockHash::from_hex(hex));
  std::copy(bytes.bytes().begin(), bytes.bytes().end(), digest.begin());
  return digest;
}

Result<BlockInfo> read_info(const SafetensorsHeader& header) {
  BlockInfo info;
  KVKEEP_TRY_ASSIGN(info.num_layers, read_count(header, "num_layers"));
  KVKEEP_TRY_ASSIGN(info.token_count, read_count(header, "token_count"));
  KVKEEP_TRY_ASSIGN(info.block_size, read_count(header, "block_size"));
  info.model_name = read_text(header, "model_name");
  info.signature = read_text(header, "cache_signature");
  if (const std::string* json = header.value("layer_cache_types")) {
    info.layer_types = strings_from_json(*json);
  }
  if (const std::string* json = header.value("layer_meta_states")) {
    info.meta_states = meta_states_from_json(*json);
  }
  if (const std::string* hex = header.value("kvkeep_parent")) {
    KVKEEP_TRY_ASSIGN(info.parent, read_hash("kvkeep_parent", hex));
  }
  if (const std::string* hex = header.value(kTokensKey)) {
    KVKEEP_TRY_ASSIGN(info.tokens, read_token_digest(*hex));
  }
  return info;
}

}  // namespace

bool is_sha256_hex(std::string_view text) { return is_lower_hex(text, 64); }

Status add_base_metadata(const BlockHash& hash, const BlockInfo& info, double created_at,
                         SafetensorsHeader& header) {
  std::string time;
  if (!append_json_double(time, created_at)) {
    return Status(Code::kInvalidArgument, "created_at is not finite");
  }
  header.add_metadata(std::string(kVersionKey), "3");
  header.add_metadata("block_hash", hash.to_hex());
  header.add_metadata("token_count", std::to_string(info.token_count));
  header.add_metadata("num_layers", std::to_string(info.num_layers));
  header.add_metadata("model_name", info.model_name);
  header.add_metadata("block_size", std::to_string(info.block_size));
  header.add_metadata("cache_signature", info.signature);
  header.add_metadata("created_at", std::move(time));
  if (info.layer_types && !info.layer_types->empty()) {
    std::string types;
    if (!append_json_strings(types, *info.layer_types, JsonStyle::kSpaced)) {
      return Status(Code::kInvalidArgument, "a layer type is not UTF-8");
    }
    header.add_metadata("layer_cache_types", std::move(types));
  }
  if (info.meta_states && !info.meta_states->empty()) {
    KVKEEP_TRY_ASSIGN(std::string meta_states, meta_states_to_json(*info.meta_states));
    header.add_metadata("layer_meta_states", std::move(meta_states));
  }
  return {};
}

void add_extension_metadata(const std::optional<std::string>& identity,
                            const std::optional<BlockHash>& parent,
                            const std::optional<TokenDigest>& tokens, SafetensorsHeader& header) {
  if (identity) header.add_metadata("kvkeep_identity", *identity);
  if (parent) header.add_metadata("kvkeep_parent", parent->to_hex());
  header.add_metadata(std::string(kProfileKey), "1");
  if (tokens) header.add_metadata(std::string(kTokensKey), to_hex(*tokens));
  header.add_metadata(std::string(kDigestKey), std::string(FileDigest::kDigits, '0'));
}

Result<bool> has_digest(const SafetensorsHeader& header) {
  const auto& members = header.metadata();
  const bool extended = std::any_of(members.begin(), members.end(), [](const auto& member) {
    return std::string_view(member.first).substr(0, kExtensionPrefix.size()) == kExtensionPrefix;
  });
  if (!extended) return false;
  const std::string* profile = header.value(kProfileKey);
  const std::string* digits = header.value(kDigestKey);
  if (profile == nullptr || *profile != "1") return damaged("kvkeep_profile is missing or unknown");
  if (digits == nullptr || !is_lower_hex(*digits, FileDigest::kDigits)) {
    return damaged("kvkeep_xxh3 is missing or malformed");
  }
  return true;
}

Status check_version(const SafetensorsHeader& header) {
  if (header.metadata().empty()) return damaged("the file has no metadata");
  const std::string version = read_text(header, kVersionKey);
  if (version == "2" || version == "3") return {};
  return Status(Code::kNotFound, MissReason::kVersion,
                "format version \"" + version.substr(0, 20) + "\" is not 2 or 3");
}

Result<BlockHeader> read_block_header(const SafetensorsHeader& header) {
  KVKEEP_TRY_ASSIGN(BlockHash hash, read_hash("block_hash", header.value("block_hash")));
  BlockHeader block{std::move(hash), {}, {}, {}, false};
  KVKEEP_TRY_ASSIGN(block.info, read_info(header));
  KVKEEP_TRY_ASSIGN(block.has_digest, has_digest(header));
  if (const std::string* time = header.value("created_at")) block.created_at = parse_number(*time);
  if (const std::string* identity = header.value("kvkeep_identity")) {
    if (!is_sha256_hex(*identity)) return damaged("the value of kvkeep_identity is not a digest");
    block.identity = *identity;
  }
  return block;
}

}  // namespace kvkeep
