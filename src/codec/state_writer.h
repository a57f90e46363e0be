// Layer states to tensor names and state keys (docs/contract.md B.8, B.9). Copies no tensor: it
// says which tensor goes where.
//
// Ownership: the states must outlive the plan.
// Threads:   any thread.
#pragma once

#include <string>
#include <vector>

#include "codec/safetensors_header.h"
#include "kvkeep/block.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

class StateWriter {
 public:
  // Tensors and state keys are added to `header`; for each tensor one entry joins `sources`, null
  // where the file holds zeros.
  StateWriter(Profile profile, SafetensorsHeader& header, std::vector<const Tensor*>& sources)
      : profile_(profile), header_(header), sources_(sources) {}

  // `type` is the layer's type name, empty if unknown. kInvalidArgument or kUnimplemented with a
  // message that names layer and element; what was added before stays.
  Status add_layer(size_t layer, const LayerState& state, std::string_view type);

 private:
  Status add_nstate(const std::string& prefix, const NState& state, size_t depth);
  Status add_elements(const std::string& prefix, const std::vector<Element>& elements,
                      size_t depth);
  Status add_element(const std::string& name, const Element& element, size_t depth);
  Status add_element_tensor(const std::string& name, const Tensor& tensor);
  Status check_tensor(const std::string& name, const Tensor& tensor) const;
  void add_tensor(const std::string& name, const Tensor& tensor);
  Status add_cache_list(const std::string& prefix, const CacheList& list);
  Status add_turboquant(const std::string& prefix, const TurboQuantState& state);
  Status add_record(const std::string& prefix, const PackedRecord& record);
  void add_stand_in(const std::string& name, DType dtype);

  Profile profile_;
  SafetensorsHeader& header_;
  std::vector<const Tensor*>& sources_;
};

}  // namespace kvkeep
