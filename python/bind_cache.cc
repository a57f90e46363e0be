#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "kvkeep/block_cache.h"
#include "layers.h"
#include "options.h"

namespace kvkeep::python {
namespace {

// `call` runs without the GIL: it must not touch Python.
template <typename Call>
auto without_gil(Call call) {
  const nb::gil_scoped_release release;
  return call();
}

// What kvkeep.BlockCache stands on.
class Cache {
 public:
  explicit Cache(Options options)
      : cache_(value_or_raise(
            without_gil([&] { return TieredBlockCache::open(std::move(options)); }))) {}
  ~Cache() {
    // A forked child has none of the threads that a close waits for.
    if (owner_ != getpid()) static_cast<void>(cache_.release());
    without_gil([this] { cache_.reset(); });
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  TieredBlockCache* operator->() const { return cache_.get(); }

 private:
  const pid_t owner_ = getpid();
  std::unique_ptr<TieredBlockCache> cache_;
};

nb::object new_value(const char* name) { return nb::module_::import_("kvkeep._values").attr(name); }

std::optional<Duration> to_limit(nb::handle timeout) {
  if (timeout.is_none()) return std::nullopt;
  return to_duration(timeout, Where("timeout"));
}

struct SaveArguments {
  nb::handle layers, token_count, layer_types, meta_states, parent;
};

BlockInput to_input(const SaveArguments& given, BorrowedArrays& arrays) {
  BlockInput input;
  input.layers = to_layers(given.layers, arrays);
  input.token_count = to_uint32(given.token_count, Where("token_count"));
  if (!given.layer_types.is_none()) {
    input.layer_types = to_texts(given.layer_types, Where("layer_types"));
  }
  if (!given.meta_states.is_none()) {
    input.meta_states = to_meta_states(given.meta_states, Where("meta_states"));
  }
  if (!given.parent.is_none()) input.parent = to_key(given.parent, Where("parent"));
  return input;
}

// A refusal is an answer; a mistake in the arguments or a closed cache is an exception.
bool is_answer(const Status& status) {
  return status.refusal() && *status.refusal() != Refusal::kRefusedClosed &&
         status.code() != Code::kInvalidArgument;
}

nb::object save(const Cache& cache, nb::handle key, const SaveArguments& given) {
  const BlockHash hash = to_key(key, Where("key"));
  BorrowedArrays arrays;
  BlockInput input = to_input(given, arrays);
  const auto saved = without_gil([&] { return cache->save_block(hash, std::move(input)); });
  const nb::object result = new_value("SaveResult");
  if (saved.ok()) {
    return result(std::string(name_of(*saved)), nb::none(), "");
  }
  const Status status = saved.status();
  if (!is_answer(status)) raise_status(status);
  return result("refused", std::string(name_of(*status.refusal())), status.message());
}

// A miss has a reason, and every reason but "closed" is an answer.
nb::object block_or_none(Result<LoadedBlock> loaded) {
  if (loaded.ok()) return from_block(*std::move(loaded));
  const Status status = loaded.status();
  const auto reason = status.miss_reason();
  if (!reason || *reason == MissReason::kClosed) raise_status(status);
  return nb::none();
}

nb::object load(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return block_or_none(without_gil([&] { return cache->load_block_with_info(hash); }));
}

nb::list load_batch(const Cache& cache, nb::handle keys, BatchMode mode) {
  const std::vector<BlockHash> hashes = to_keys(keys, Where("keys"));
  BatchResult results = without_gil([&] { return cache->load_blocks(hashes, mode); });
  nb::list blocks;
  for (auto& result : results) {
    nb::object block = block_or_none(std::move(result));
    if (block.is_none() && mode == BatchMode::kPrefix) break;
    blocks.append(std::move(block));
  }
  return blocks;
}

bool contains(const Cache& cache, nb::handle key) {
  return cache->has_block(to_key(key, Where("key")));
}

bool remove(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return value_or_raise(without_gil([&] { return cache->delete_block(hash); }));
}

bool forget(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return without_gil([&] { return cache->forget_block(hash); });
}

nb::object flush(const Cache& cache, nb::handle timeout) {
  const auto limit = to_limit(timeout);
  const FlushReport report = value_or_raise(without_gil([&] { return cache->flush(limit); }));
  return new_value("FlushReport")(report.flushed, from_keys(report.failed));
}

nb::object close(const Cache& cache, nb::handle timeout) {
  const auto limit = to_limit(timeout);
  const CloseReport report = value_or_raise(without_gil([&] { return cache->close(limit); }));
  return new_value("CloseReport")(report.flushed, from_keys(report.failed),
                                  from_keys(report.abandoned));
}

nb::dict stats(const Cache& cache) {
  const CacheStats snapshot = without_gil([&] { return cache->stats(); });
  nb::dict all;
#define KVKEEP_X(name, help) all[#name] = snapshot.name;
  KVKEEP_COUNTERS(KVKEEP_X)
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
  nb::dict misses;
#define KVKEEP_X(id, name, help) misses[name] = snapshot.missed(MissReason::id);
  KVKEEP_MISS_REASONS(KVKEEP_X)
#undef KVKEEP_X
  nb::dict refusals;
#define KVKEEP_X(id, name, help) refusals[name] = snapshot.refused(Refusal::id);
  KVKEEP_REFUSALS(KVKEEP_X)
#undef KVKEEP_X
  all["miss_reason"] = misses;
  all["save_refused"] = refusals;
  return all;
}

std::string repr(const Cache& cache) {
  const std::string text = without_gil([&] { return cache->debug_string(); });
  return "kvkeep.BlockCache" + text.substr(std::min(text.find('('), text.size()));
}

constexpr const char* kSaveDoc =
    "Copies a block into the cache and queues it for disk; loadable at once.\n\n"
    "key: 1 to 119 bytes, usually from chain_keys().\n"
    "layers: one state per layer: a pair (keys, values), NState, CacheList or TurboQuant. Arrays "
    "may be\n"
    "    anything in CPU memory with DLPack or the buffer protocol (numpy, ml_dtypes, MLX, torch,\n"
    "    kvkeep.Tensor), with any strides. dtypes: F16, F32, BF16, signed and unsigned integers of "
    "8 to\n"
    "    64 bits, bool, F8_E4M3, F8_E5M2, F8_E8M0. They must not change until save() returns, and "
    "may\n"
    "    afterwards.\n"
    "token_count: tokens of this block.\n"
    "layer_types: class name of each layer's cache.\n"
    "meta_states: per layer a list of None, bool, int, float, str and lists.\n"
    "parent: key of the block before this one.\n\n"
    "Returns a SaveResult: 'queued', 'inline', 'present', or 'refused' with a reason (then it is\n"
    "false).\n"
    "TypeError and kvkeep.InvalidArgument (a ValueError) for mistakes in the arguments; "
    "kvkeep.Closed.\n"
    "Safe from any thread; releases the GIL. Memory only, except that it may wait queue_wait "
    "seconds\n"
    "for a full queue, then write the block itself ('inline'), and remove a bounded number of "
    "files\n"
    "to make room.";

constexpr const char* kLoadDoc =
    "The block of a key, or None if it is missing or damaged (stats() says why).\n\n"
    "Reads the disk unless the block is still waiting to be written. Safe from any thread; "
    "releases\n"
    "the GIL. kvkeep.Closed after close().";

constexpr const char* kLoadManyDoc =
    "The blocks of the keys up to the first miss, with one submission to the disk.\n\n"
    "For the keys of a prompt: blocks after a missing one are of no use, and are neither read nor\n"
    "counted. Otherwise as load().";

constexpr const char* kLoadEachDoc =
    "One entry per key, None for a miss, with one submission to the disk. Otherwise as load().";

constexpr const char* kDeleteDoc =
    "Removes the block everywhere. True if something was removed.\n\n"
    "kvkeep.Unavailable (an OSError) if its file could not be unlinked. Safe from any thread.";

constexpr const char* kForgetDoc =
    "Stops serving a block that turned out to be unusable. True if it was served.\n\n"
    "Its file stays, counted, until it is evicted or a save replaces it; loads say 'forgotten'. "
    "Safe\n"
    "from any thread. False after close().";

constexpr const char* kFlushDoc =
    "Waits until everything accepted before the call is at its final path.\n\n"
    "timeout: seconds; None waits without limit. kvkeep.DeadlineExceeded (a TimeoutError) if it "
    "passes\n"
    "first. Returns a FlushReport. Safe from any thread; releases the GIL.";

constexpr const char* kCloseDoc =
    "Writes what is queued and gives the directory back. Later calls return the first report.\n\n"
    "timeout: seconds; None takes close_deadline. Returns a CloseReport. Loaded tensors stay "
    "valid.\n"
    "Safe from any thread; releases the GIL.";

void bind_calls(nb::class_<Cache>& type) {
  type.def(
          "save",
          [](const Cache& cache, nb::handle key, nb::handle layers, nb::handle token_count,
             nb::handle layer_types, nb::handle meta_states, nb::handle parent) {
            return save(cache, key, {layers, token_count, layer_types, meta_states, parent});
          },
          nb::arg("key"), nb::arg("layers"), nb::kw_only(), nb::arg("token_count"),
          nb::arg("layer_types") = nb::none(), nb::arg("meta_states") = nb::none(),
          nb::arg("parent") = nb::none(), kSaveDoc)
      .def("load", load, nb::arg("key"), kLoadDoc)
      .def(
          "load_many",
          [](const Cache& cache, nb::handle keys) {
            return load_batch(cache, keys, BatchMode::kPrefix);
          },
          nb::arg("keys"), kLoadManyDoc)
      .def(
          "load_each",
          [](const Cache& cache, nb::handle keys) {
            return load_batch(cache, keys, BatchMode::kEach);
          },
          nb::arg("keys"), kLoadEachDoc)
      .def("delete", remove, nb::arg("key"), kDeleteDoc)
      .def("forget", forget, nb::arg("key"), kForgetDoc)
      .def("flush", flush, nb::arg("timeout") = nb::none(), kFlushDoc)
      .def("close", close, nb::arg("timeout") = nb::none(), kCloseDoc);
}

}  // namespace

void bind_cache(nb::module_& module) {
  nb::class_<Cache> type(module, "Cache", nb::is_weak_referenceable(),
                         "What kvkeep.BlockCache stands on.");
  type.def("__init__", [](Cache* self, const nb::bytes& path, const nb::dict& arguments) {
    new (self) Cache(to_options(path, arguments));
  });
  bind_calls(type);
  type.def("__contains__", contains, nb::arg("key"),
           "True if a load would have found the block a moment ago. Memory only; touches nothing.")
      .def(
          "__len__", [](const Cache& cache) { return cache->size(); }, "Blocks that can be loaded.")
      .def(
          "stats", stats,
          "A snapshot of all counters as a dict; miss_reason and save_refused are dicts by reason.")
      .def("__repr__", repr);
}

}  // namespace kvkeep::python
