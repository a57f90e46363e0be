// Plain Python values to C++ ones. Every failure names the argument and what is accepted.
//
// Threads: with the GIL.
// Errors:  TypeError for a wrong type, kvkeep.InvalidArgument (a ValueError) for a value out of
//          range.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "kvkeep/block.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/environment.h"
#include "kvkeep/hot_budget.h"

namespace kvkeep::python {

bool to_bool(nb::handle object, const Where& where);
// An int, or anything with __index__ (numpy's integers), but no bool.
int64_t to_int64(nb::handle object, const Where& where);
uint32_t to_uint32(nb::handle object, const Where& where);
double to_double(nb::handle object, const Where& where);
std::string to_text(nb::handle object, const Where& where);
// Bytes: an int, or text such as "50GB".
uint64_t to_size(nb::handle object, const Where& where);
// Seconds: an int or a float, finite and not negative.
Duration to_duration(nb::handle object, const Where& where);
// A key: bytes, bytearray or memoryview.
BlockHash to_key(nb::handle object, const Where& where);
std::vector<BlockHash> to_keys(nb::handle object, const Where& where);
HashSet to_key_set(nb::handle object, const Where& where);
std::vector<std::string> to_texts(nb::handle object, const Where& where);
std::map<std::string, std::string> to_text_map(nb::handle object, const Where& where);
// One list of None, bool, int, float, str and such lists per layer.
std::vector<MetaState> to_meta_states(nb::handle object, const Where& where);

// The elements of a list, a tuple or another iterable that is not text; TypeError saying
// `expected`.
nb::object to_list(nb::handle object, const Where& where, std::string_view expected);

nb::bytes from_key(const BlockHash& key);
nb::list from_keys(const std::vector<BlockHash>& keys);
nb::object from_meta_states(const std::optional<std::vector<MetaState>>& states);

}  // namespace kvkeep::python
