// Which fields of a namespace or an identity are not as asked for, and how a person is told.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kvkeep/why.h"

namespace kvkeep {

using Fields = std::map<std::string, std::string>;

// REQUIRES: the two have different digests. Where nothing else differs, their salts do: what
// `stored` has of a salt is only "salted".
std::vector<FieldDifference> differences(const Fields& stored, const Fields& asked);

// "stored for build 'b7' and without adapter; asked for build 'b8' and adapter 'x'".
std::string difference_text(const std::vector<FieldDifference>& differences);

}  // namespace kvkeep
