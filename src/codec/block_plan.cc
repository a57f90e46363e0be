#include "codec/block_plan.h"

#include "base/bytes.h"
#include "codec/bit_depth.h"
#include "codec/block_metadata.h"
#include "codec/digest.h"
#include "codec/meta_state.h"
#include "codec/state_writer.h"
#include "hash/signature.h"

namespace kvkeep {
namespace {

// Where the data section starts (B.17): in bytes, by profile and size of the data.
constexpr uint64_t kSeedAlignment = 8;
constexpr uint64_t kSmallAlignment = 64;
constexpr uint64_t kPageAlignment = 4096;
constexpr uint64_t kPageAlignedFrom = 256 << 10;

Status invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

Status check_length(std::string_view what, size_t given, size_t layers) {
  if (given == layers) return {};
  return invalid(std::to_string(given) + " " + std::string(what) + " for " +
                 std::to_string(layers) + " layers");
}

Status check_texts(const BlockInfo& info) {
  if (!is_valid_utf8(info.model_name)) return invalid("the model name is not UTF-8");
  if (!info.layer_types) return {};
  for (size_t i = 0; i < info.layer_types->size(); ++i) {
    if (!is_valid_utf8((*info.layer_types)[i])) {
      return invalid("layer " + std::to_string(i) + ": its type name is not UTF-8");
    }
  }
  return {};
}

Status check_context(const BlockInput& input, const EncodeContext& context) {
  if (input.layers.empty()) return invalid("the block has no layers");
  if (input.token_count == 0) return invalid("the block has no tokens");
  if (!context.identity) return {};
  if (context.profile == Profile::kSeedExact)
    return invalid("an identity needs the extended profile");
  return is_sha256_hex(*context.identity) ? Status() : invalid("the identity is not 64 hex digits");
}

// What the block says of itself, type names and meta states as they are stored.
Result<BlockInfo> stamp(const BlockInput& input, const EncodeContext& context) {
  BlockInfo info;
  info.num_layers = static_cast<uint32_t>(input.layers.size());
  info.token_count = input.token_count;
  info.model_name = input.model_name;
  info.block_size = context.block_size != 0 ? context.block_size : input.token_count;
  if (input.layer_types && !input.layer_types->empty()) {
    KVKEEP_TRY(check_length("layer types", input.layer_types->size(), input.layers.size()));
    info.layer_types = storage_types(*input.layer_types);
  }
  if (input.meta_states && !input.meta_states->empty()) {
    KVKEEP_TRY(check_length("meta states", input.meta_states->size(), input.layers.size()));
    info.meta_states = *input.meta_states;
  }
  KVKEEP_TRY(check_texts(info));
  if (info.layer_types && info.meta_states) {
    info.meta_states = clamp_rotating(input.layers, *info.layer_types, std::move(*info.meta_states),
                                      context.profile);
  }
  KVKEEP_TRY_ASSIGN(const auto bits,
                    stamped_bits(input.layers, info, context.turboquant_bits, context.profile));
  info.signature =
      make_signature({info.block_size, info.layer_types.value_or(std::vector<std::string>()),
                      info.model_name, info.num_layers, bits});
  if (info.signature.empty()) return invalid("the bit depth is not finite");
  return info;
}

uint64_t data_alignment(Profile profile, uint64_t data_bytes) {
  if (profile == Profile::kSeedExact) return kSeedAlignment;
  return data_bytes >= kPageAlignedFrom ? kPageAlignment : kSmallAlignment;
}

// The header's text, its padding, and where in it the digest goes.
Status write_text(Profile profile, BlockPlan& plan) {
  KVKEEP_TRY_ASSIGN(plan.text, plan.header.to_json());
  plan.has_digest = profile == Profile::kExtended;
  constexpr std::string_view kBehindDigits = "\"}}";
  if (plan.has_digest) {
    plan.digits_at = 8 + plan.text.size() - kBehindDigits.size() - FileDigest::kDigits;
  }
  const uint64_t align = data_alignment(profile, plan.header.data_bytes());
  plan.text.resize(round_up(8 + plan.text.size(), align) - 8, ' ');
  if (plan.text.size() < kHeaderBytesLimit) return {};
  return invalid("the block's header has " + std::to_string(plan.text.size()) +
                 " bytes, it must stay below " + std::to_string(kHeaderBytesLimit));
}

}  // namespace

Result<BlockPlan> plan_block(const BlockHash& hash, const BlockInput& input,
                             const EncodeContext& context) {
  KVKEEP_TRY(check_context(input, context));
  KVKEEP_TRY_ASSIGN(const BlockInfo info, stamp(input, context));
  BlockPlan plan;
  KVKEEP_TRY(add_base_metadata(hash, info, context.created_at, plan.header));
  StateWriter writer(context.profile, plan.header, plan.sources);
  for (size_t i = 0; i < input.layers.size(); ++i) {
    const std::string_view type = info.layer_types ? (*info.layer_types)[i] : std::string_view();
    KVKEEP_TRY(writer.add_layer(i, input.layers[i], type));
  }
  if (context.profile == Profile::kExtended) {
    add_extension_metadata(context.identity, input.parent, input.tokens, plan.header);
  }
  KVKEEP_TRY(write_text(context.profile, plan));
  if (!plan.header.build_lookup()) return Status(Code::kInternal, "two tensors share a name");
  return plan;
}

}  // namespace kvkeep
