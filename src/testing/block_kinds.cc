// all_kinds(): one small block for each thing that a block can hold.

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "testing/block_builder.h"

namespace kvkeep::testing {
namespace {

// How much payload the corpus being built has used.
thread_local uint64_t payload_used = 0;

// Different bytes for each tensor of a corpus.
Tensor tensor(DType dtype, Shape shape) {
  const uint64_t bytes = byte_size(dtype, shape).value_or(0);
  return payload(dtype, std::move(shape), 77, std::exchange(payload_used, payload_used + bytes));
}

Element element(Tensor t) { return Element{std::move(t)}; }
Element null() { return Element{Null{}}; }

NState nstate(std::string class_name, std::vector<Element> elements) {
  return NState{std::move(class_name), std::move(elements)};
}

NState small_pair() {
  return make_pair_state(tensor(DType::kF16, {1, 2, 3}), tensor(DType::kF16, {1, 2, 3}));
}

MetaValue text(std::string s) { return MetaValue{std::move(s)}; }
MetaValue number(int64_t n) { return MetaValue{n}; }
MetaValue real(double d) { return MetaValue{d}; }
MetaValue list(std::vector<MetaValue> items) { return MetaValue{std::move(items)}; }

class Corpus {
 public:
  // A block of these layers; the caller may add to it before the next call.
  TestBlock& add(std::string name, std::vector<LayerState> layers) {
    TestBlock block{std::move(name), key_of(1000 + blocks_.size()), {}, {}, false};
    block.input.layers = std::move(layers);
    block.input.token_count = 3;
    block.input.model_name = std::string("m");
    blocks_.push_back(std::move(block));
    return blocks_.back();
  }
  void add(std::string name, LayerState layer, std::string type) {
    std::vector<LayerState> layers;
    layers.push_back(std::move(layer));
    TestBlock& block = add(std::move(name), std::move(layers));
    block.input.layer_types = {{std::move(type)}};
    block.input.meta_states = {{MetaState{number(3)}}};
  }
  std::vector<TestBlock> take() { return std::move(blocks_); }

 private:
  std::vector<TestBlock> blocks_;
};

void add_nstates(Corpus& corpus) {
  corpus.add("pair", small_pair(), "KVCache");
  corpus.add("no types, no meta states", {small_pair(), small_pair()});
  auto named = small_pair();
  named.class_name = "ArraysCache";
  corpus.add("pair with a class name", std::move(named), "ArraysCache");
  corpus.add("nstate of 0", nstate("", {}), "KVCache");
  corpus.add("nstate of 1", nstate("One", {element(tensor(DType::kF32, {2}))}), "KVCache");
  corpus.add("nstate of 3",
             nstate("", {element(tensor(DType::kF32, {2})), element(tensor(DType::kU8, {3})),
                         element(tensor(DType::kI64, {1}))}),
             "ArraysCache");
  corpus.add("nstate of 3 without type",
             {nstate("", {null(), element(tensor(DType::kBF16, {2, 2})), null()})});
  corpus.add("nulls", nstate("", {null(), null()}), "KVCache");
  corpus.add("placeholder", make_pair_state(tensor(DType::kF32, {1}), tensor(DType::kF32, {1})),
             "CacheList");
}

void add_nesting(Corpus& corpus) {
  ElementTuple tuple{{element(tensor(DType::kF32, {2})), null()}};
  NState inner = nstate("Inner", {element(tensor(DType::kBool, {4}))});
  NState deep = nstate("", {Element{ElementTuple{{Element{nstate("Deep", {})}}}}});
  corpus.add("tuple and nested nstates",
             nstate("PoolingCache", {element(tensor(DType::kU8, {1, 3})), Element{std::move(tuple)},
                                     Element{std::move(inner)}, Element{std::move(deep)}}),
             "PoolingCache");
  corpus.add("two elements, one nested",
             nstate("", {Element{ElementTuple{}}, element(tensor(DType::kF16, {2}))}), "Two");
}

void add_cache_lists(Corpus& corpus) {
  CacheList two{{small_pair(), nstate("KVCache", {element(tensor(DType::kF16, {1, 1, 4, 2})),
                                                  element(tensor(DType::kI32, {1, 1, 4, 0}))})}};
  std::vector<LayerState> layers;
  layers.emplace_back(std::move(two));
  layers.emplace_back(small_pair());
  TestBlock& block = corpus.add("cache list beside a pair", std::move(layers));
  block.input.layer_types = {{"CacheList", "KVCache"}};
  block.input.meta_states = {
      {MetaState{list({text("KVCache"), text("KVCache")}), list({list({number(4)}), list({})})},
       MetaState{}}};

  CacheList odd{{nstate("", {}), nstate("Three", {null(), null(), null()})}};
  corpus.add("cache list of odd nstates", std::move(odd), "CacheList");
  corpus.add("cache list of 0", CacheList{}, "CacheList");
  corpus.add("cache list of 0 without type", {CacheList{}});
  corpus.add("cache list without type", {CacheList{{small_pair()}}});
  corpus.add("cache list of another type", CacheList{{small_pair()}}, "Other");
}

TurboQuantState turboquant(uint64_t heads) {
  TurboQuantState state;
  state.key = {"TurboQuantProdState",
               {{"norms", tensor(DType::kF32, {1, heads})},
                {"mse_indices", tensor(DType::kU32, {1, heads, 1})},
                {"residual_norms", tensor(DType::kF32, {1, heads})},
                {"qjl_signs", tensor(DType::kU32, {1, heads, 1})}}};
  state.value = {"TurboQuantMSEState",
                 {{"norms", tensor(DType::kF32, {1, heads})},
                  {"indices", tensor(DType::kU32, {1, heads, 1})}}};
  return state;
}

void add_turboquant(Corpus& corpus) {
  std::vector<LayerState> layers;
  layers.emplace_back(turboquant(2));
  layers.emplace_back(small_pair());
  TestBlock& block = corpus.add("TurboQuant", std::move(layers));
  block.input.layer_types = {{"TurboQuantKVCache", "KVCache"}};
  block.input.meta_states = {{MetaState{number(64), real(3.5), number(0)}, MetaState{number(64)}}};
  corpus.add("TurboQuant without elements or type", {turboquant(0)});
}

void add_dtypes(Corpus& corpus) {
  std::vector<Element> elements;
  std::vector<Element> floats8;
  std::vector<Element> empty;
#define KVKEEP_X(id, name, bytes)                                                        \
  {                                                                                      \
    const bool f8 = std::string_view(name).substr(0, 2) == "F8";                         \
    (f8 ? floats8 : elements).push_back(element(tensor(DType::id, {3})));                \
    if (!f8 && empty.size() < 6) empty.push_back(element(tensor(DType::id, {1, 2, 0}))); \
  }
  KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
  floats8.push_back(element(tensor(DType::kF8E4M3, {0})));
  corpus.add("every dtype, misaligned", nstate("", std::move(elements)), "D");
  corpus.add("without elements", nstate("", std::move(empty)), "D");
  corpus.add("8-bit floats", {nstate("", std::move(floats8))}).extended_only = true;
}

// A view of `base` bytes of payload whose first element lies `first` bytes into them.
Tensor strided(DType dtype, Shape shape, std::vector<int64_t> strides, uint64_t base,
               uint64_t first) {
  const Tensor bytes = tensor(DType::kU8, {base});
  TensorView view;
  view.dtype = dtype;
  view.shape = std::move(shape);
  view.byte_strides = std::move(strides);
  view.base = bytes.data.view.data() + first;
  view.keep_alive = bytes.data.owner;
  return *as_tensor(view);
}

void add_strides(Corpus& corpus) {
  corpus.add("strides",
             nstate("", {element(strided(DType::kF16, {1, 2, 3, 2}, {80, 40, 8, 2}, 80, 0)),
                         element(strided(DType::kF32, {3, 2}, {4, 12}, 24, 0)),
                         element(strided(DType::kI16, {4}, {-6}, 20, 18)),
                         element(strided(DType::kU8, {2, 3}, {0, 1}, 3, 0)),
                         element(strided(DType::kI64, {2, 2}, {-16, 8}, 32, 16)),
                         element(tensor(DType::kF32, {}))}),
             "Strided");
}

void add_texts(Corpus& corpus) {
  TestBlock& block = corpus.add("texts", {nstate("Zustand \u00e9 \U0001f600", {null()})});
  block.input.model_name = "org/\u30e2\u30c7\u30eb \"7B\"\\\n\t\x7f/";
  block.input.layer_types = {{"Typ \u4e2d"}};
  block.input.meta_states = {
      {MetaState{text(""), text("\x01\u2028\U0010ffff"), text("{not json")}}};
}

void add_meta_states(Corpus& corpus) {
  TestBlock& block = corpus.add("meta states", {small_pair()});
  block.input.layer_types = std::vector<std::string>();
  block.input.meta_states = {{MetaState{
      MetaValue{nullptr}, MetaValue{true}, MetaValue{false}, number(-1),
      number(std::numeric_limits<int64_t>::max()), number(std::numeric_limits<int64_t>::min()),
      real(-0.0), real(6), real(0.1), real(1e22), real(5e-324), real(1.7976931348623157e308),
      list({}), list({list({list({text("x")})}), MetaValue{nullptr}})}}};
  for (const bool named : {false, true}) {
    NState state = make_pair_state(tensor(DType::kF16, {1, 1, 4}), tensor(DType::kF16, {1, 1, 4}));
    if (named) state.class_name = "RotatingKVCache";
    TestBlock& clamped = corpus.add(named ? "clamped nstate" : "clamped pair", {std::move(state)});
    clamped.input.layer_types = {{"BufferedRotatingKVCache"}};
    clamped.input.meta_states = {
        {MetaState{text("0"), number(8), number(9), text("9"), number(1)}}};
  }
}

void add_keys(Corpus& corpus) {
  TestBlock& chained = corpus.add("parent and identity", {small_pair()});
  chained.input.parent = key_of(5);
  chained.identity = key_of(6).to_hex();
  corpus.add("key of 1 byte", {small_pair()}).hash = *BlockHash::from_hex("00");
  corpus.add("key of 119 bytes", {small_pair()}).hash = *BlockHash::from_hex(std::string(238, 'f'));
}

}  // namespace

std::vector<TestBlock> all_kinds() {
  payload_used = 0;
  Corpus corpus;
  add_nstates(corpus);
  add_nesting(corpus);
  add_cache_lists(corpus);
  add_turboquant(corpus);
  add_dtypes(corpus);
  add_strides(corpus);
  add_texts(corpus);
  add_meta_states(corpus);
  add_keys(corpus);
  return corpus.take();
}

TestBlock nested(size_t levels) {
  payload_used = 0;
  Element innermost = element(tensor(DType::kF32, {2}));
  for (size_t i = 0; i < levels; ++i) {
    std::vector<Element> elements;
    elements.push_back(std::move(innermost));
    if (i % 2 == 0) {
      innermost.v = ElementTuple{std::move(elements)};
    } else {
      innermost.v = nstate("C", std::move(elements));
    }
  }
  Corpus corpus;
  corpus.add("nested", nstate("", {std::move(innermost)}), "Nested");
  return std::move(corpus.take().front());
}

}  // namespace kvkeep::testing
