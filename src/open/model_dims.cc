#include <initializer_list>
#include <limits>

#include "kvkeep/scheduler.h"

namespace kvkeep {
namespace {

constexpr uint64_t kKeysAndValues = 2;

uint64_t saturating_product(std::initializer_list<uint64_t> factors) {
  uint64_t product = 1;
  bool overflow = false;
  for (const uint64_t factor : factors) {
    if (factor == 0) return 0;
    overflow |= __builtin_mul_overflow(product, factor, &product);
  }
  return overflow ? std::numeric_limits<uint64_t>::max() : product;
}

uint32_t kv_heads(const ModelDims& dims) {
  return dims.num_kv_heads > 0 ? dims.num_kv_heads : dims.num_attention_heads;
}

uint32_t head_size(const ModelDims& dims) {
  if (dims.head_dim > 0 || dims.num_attention_heads == 0) return dims.head_dim;
  return dims.hidden_size / dims.num_attention_heads;
}

}  // namespace

bool ModelDims::complete() const {
  return num_layers > 0 && kv_heads(*this) > 0 && head_size(*this) > 0;
}

uint64_t ModelDims::kv_bytes(uint64_t tokens) const {
  if (kv_bytes_per_token) return saturating_product({tokens, *kv_bytes_per_token});
  if (!complete()) return 0;
  return saturating_product(
      {tokens, kv_heads(*this), head_size(*this), dtype_size, kKeysAndValues, num_layers});
}

}  // namespace kvkeep
