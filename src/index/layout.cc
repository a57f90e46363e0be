#include "index/layout.h"

#include <bit>
#include <cstdint>
#include <tuple>

#include "hash/signature.h"

namespace kvkeep {
namespace {

auto fields(const Layout& l) {
  return std::tie(l.model_name, l.num_layers, l.block_size, l.signature, l.layer_types, l.identity,
                  l.own_bits, l.has_digest);
}

Layout layout_of(const BlockHeader& header) {
  const BlockInfo& info = header.info;
  return {info.model_name,
          info.num_layers,
          info.block_size,
          info.signature,
          info.layer_types,
          header.identity,
          block_bits(info.layer_types, info.meta_states),
          header.has_digest};
}

// Lengths in front, so that different layouts never have the same text.
std::string text_of(const Layout& l) {
  std::string text;
  const auto put = [&text](const std::string& s) { text += std::to_string(s.size()) + ':' + s; };
  put(l.model_name);
  put(std::to_string(l.num_layers) + ',' + std::to_string(l.block_size));
  put(l.signature);
  put(l.identity.value_or("-"));
  put(l.own_bits ? std::to_string(std::bit_cast<uint64_t>(*l.own_bits)) : "-");
  text += l.has_digest ? 'd' : '-';
  text += l.layer_types ? std::to_string(l.layer_types->size()) : "-";
  for (const std::string& type : l.layer_types.value_or(std::vector<std::string>{})) put(type);
  return text;
}

}  // namespace

bool operator==(const Layout& a, const Layout& b) { return fields(a) == fields(b); }

LayoutPtr LayoutTable::intern(const BlockHeader& header) {
  Layout layout = layout_of(header);
  std::string text = text_of(layout);
  MutexLock lock(mu_);
  std::weak_ptr<const Layout>& slot = layouts_[std::move(text)];
  LayoutPtr known = slot.lock();
  if (known != nullptr && *known == layout) return known;
  auto fresh = std::make_shared<const Layout>(std::move(layout));
  slot = fresh;
  if (layouts_.size() >= sweep_at_) {
    std::erase_if(layouts_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * layouts_.size() + 64;
  }
  return fresh;
}

}  // namespace kvkeep
