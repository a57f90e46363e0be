#include "codec/image.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "io/file_system.h"

namespace kvkeep {
namespace {

using Owner = std::shared_ptr<const void>;

void adopt(std::vector<Element>& elements, const Owner& owner);

void adopt(Tensor& tensor, const Owner& owner) {
  if (tensor.data.owner == nullptr) tensor.data.owner = owner;
}

void adopt(Element& element, const Owner& owner) {
  if (auto* tensor = std::get_if<Tensor>(&element.v)) return adopt(*tensor, owner);
  if (auto* tuple = std::get_if<ElementTuple>(&element.v)) return adopt(tuple->elements, owner);
  if (auto* state = std::get_if<NState>(&element.v)) return adopt(state->elements, owner);
}

void adopt(std::vector<Element>& elements, const Owner& owner) {
  for (Element& element : elements) adopt(element, owner);
}

void adopt(PackedRecord& record, const Owner& owner) {
  for (auto& [name, tensor] : record.fields) adopt(tensor, owner);
}

void adopt(LayerState& layer, const Owner& owner) {
  if (auto* state = std::get_if<NState>(&layer)) return adopt(state->elements, owner);
  if (auto* list = std::get_if<CacheList>(&layer)) {
    for (NState& sub : list->subs) adopt(sub.elements, owner);
    return;
  }
  auto& packed = std::get<TurboQuantState>(layer);
  adopt(packed.key, owner);
  adopt(packed.value, owner);
}

}  // namespace

Image::Image(PooledBuffer buffer, uint64_t file_bytes, BlockHeader header,
             std::vector<LayerState> layers, uint32_t misaligned_tensors)
    : buffer_(std::move(buffer)),
      file_bytes_(file_bytes),
      header_(std::move(header)),
      layers_(std::move(layers)),
      misaligned_tensors_(misaligned_tensors) {}

BytesView Image::padded() const {
  // Pools of tests round to single bytes and have no room for the padding.
  return {buffer_.data(), std::min<size_t>(round_up(file_bytes_, kIoAlign), buffer_.capacity())};
}

LoadedBlock Image::lend(const ImagePtr& image, Source source) {
  LoadedBlock block{image->layers_, image->header_.info, source};
  for (LayerState& layer : block.layers) adopt(layer, image);
  return block;
}

}  // namespace kvkeep
