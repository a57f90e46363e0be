// The compatibility signature of a block and the tables of layer type names: contract B.13, B.14.
//
// Threads: any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/block.h"

namespace kvkeep {

struct SignatureFields {
  uint32_t block_size = 0;
  std::vector<std::string> layer_types;
  std::string model_name;
  uint32_t num_layers = 0;
  std::optional<double> turboquant_bits;
};

// Compact JSON with sorted keys. Empty if a text is not UTF-8 or the depth is not finite.
std::string make_signature(const SignatureFields& fields);
// The fields of a signature; none if it is not a JSON object or a member has a wrong type.
std::optional<SignatureFields> parse_signature(std::string_view signature);
// The bit depth recorded in a signature. None for anything malformed.
std::optional<double> signature_bits(std::string_view signature);

// The bit depth that a block's meta states prove (B.13).
std::optional<double> block_bits(const std::optional<std::vector<std::string>>& types,
                                 const std::optional<std::vector<MetaState>>& meta_states);

// The depth of each TurboQuant layer with a usable meta state, in layer order; none where it is no
// number.
std::vector<std::optional<double>> layer_bits(
    const std::optional<std::vector<std::string>>& types,
    const std::optional<std::vector<MetaState>>& meta_states);
bool is_turboquant_type(std::string_view type);

// B.14: alias on save, and the table used when two layouts are compared.
std::vector<std::string> storage_types(std::vector<std::string> types);
std::vector<std::string> canonical_types(std::vector<std::string> types);

// Lower-case hex SHA-256 of the identity's compact JSON with sorted keys (RUL-18); none if empty.
// REQUIRES: names and values are UTF-8.
std::optional<std::string> identity_digest(const std::map<std::string, std::string>& identity);

}  // namespace kvkeep
