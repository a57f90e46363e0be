// Layout: what all blocks of one kind have in common, stored once however many blocks share it.
//
// Threads: a Layout is immutable; LayoutTable: any thread, mu_ is a leaf lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "codec/image.h"

namespace kvkeep {

struct Layout {
  std::string model_name;
  uint32_t num_layers = 0;
  uint32_t block_size = 0;
  std::string signature;
  std::optional<std::vector<std::string>> layer_types;
  std::optional<std::string> identity;
  std::optional<double> own_bits;  // TurboQuant depth that the block's meta states prove.
  bool has_digest = false;
};
using LayoutPtr = std::shared_ptr<const Layout>;

bool operator==(const Layout& a, const Layout& b);

class LayoutTable {
 public:
  // The one Layout for all blocks whose headers agree in it.
  LayoutPtr intern(const BlockHeader& header) KVKEEP_EXCLUDES(mu_);

 private:
  Mutex mu_;
  // By a text of all fields. A layout that no block has any more leaves at the next sweep.
  std::unordered_map<std::string, std::weak_ptr<const Layout>> layouts_ KVKEEP_GUARDED_BY(mu_);
  size_t sweep_at_ KVKEEP_GUARDED_BY(mu_) = 64;
};

}  // namespace kvkeep
