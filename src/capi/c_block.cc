#include "capi/arguments.h"
#include "capi/c_tensors.h"
#include "capi/handles.h"

namespace kvkeep::capi {
namespace {

kvkeep_save_outcome outcome_of(SaveOutcome outcome) {
  switch (outcome) {
    case SaveOutcome::kStored:
      return KVKEEP_STORED;
    case SaveOutcome::kQueued:
      return KVKEEP_QUEUED;
    case SaveOutcome::kAlreadyPresent:
      return KVKEEP_PRESENT;
    case SaveOutcome::kWrittenInline:
      return KVKEEP_WRITTEN;
  }
  return KVKEEP_QUEUED;
}

// The blocks of the hits; the status of the miss that ended them, if there was one.
Status hand_over(BatchResult results, kvkeep_block** blocks, size_t* num_blocks) {
  std::vector<std::unique_ptr<kvkeep_block>> made;
  Status miss;
  for (auto& result : results) {
    if (result.ok()) {
      made.push_back(make_block(*std::move(result)));
    } else {
      miss = result.status();
    }
  }
  for (auto& block : made) blocks[(*num_blocks)++] = block.release();
  return miss;
}

bool closed(const Status& status) { return status.miss_reason() == MissReason::kClosed; }

}  // namespace
}  // namespace kvkeep::capi

using kvkeep::Status;
using kvkeep::capi::array_given;
using kvkeep::capi::fenced;
using kvkeep::capi::not_null;

kvkeep_status kvkeep_save(kvkeep_cache* cache, kvkeep_key key, const kvkeep_block_input* block,
                          kvkeep_save_outcome* outcome) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const auto hash, kvkeep::capi::to_hash(key, "key"));
    KVKEEP_TRY_ASSIGN(auto input, kvkeep::capi::to_block_input(block));
    KVKEEP_TRY_ASSIGN(const auto saved, cache->cache->save_block(hash, std::move(input)));
    if (outcome != nullptr) *outcome = kvkeep::capi::outcome_of(saved);
    return {};
  });
}

kvkeep_status kvkeep_load(kvkeep_cache* cache, kvkeep_key key, kvkeep_block** block) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(block, "block"));
    *block = nullptr;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const auto hash, kvkeep::capi::to_hash(key, "key"));
    KVKEEP_TRY_ASSIGN(auto loaded, cache->cache->load_block_with_info(hash));
    *block = kvkeep::capi::make_block(std::move(loaded)).release();
    return {};
  });
}

kvkeep_status kvkeep_load_prefix(kvkeep_cache* cache, const kvkeep_key* keys, size_t num_keys,
                                 kvkeep_block** blocks, size_t* num_blocks) {
  Status miss;
  const kvkeep_status status = fenced([&]() -> Status {
    KVKEEP_TRY(not_null(num_blocks, "num_blocks"));
    *num_blocks = 0;
    KVKEEP_TRY(array_given(blocks, num_keys, "blocks"));
    for (size_t i = 0; i < num_keys; ++i) blocks[i] = nullptr;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const auto hashes, kvkeep::capi::to_hashes(keys, num_keys));
    miss = kvkeep::capi::hand_over(cache->cache->load_blocks(hashes, kvkeep::BatchMode::kPrefix),
                                   blocks, num_blocks);
    return kvkeep::capi::closed(miss) ? miss : Status();
  });
  if (status == KVKEEP_OK) kvkeep::capi::tell(miss);
  return status;
}

kvkeep_status kvkeep_preload(kvkeep_cache* cache, const kvkeep_key* keys, size_t num_keys,
                             size_t* num_loaded) {
  return fenced([&]() -> Status {
    if (num_loaded != nullptr) *num_loaded = 0;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const auto hashes, kvkeep::capi::to_hashes(keys, num_keys));
    const size_t brought = cache->cache->preload(hashes);
    if (num_loaded != nullptr) *num_loaded = brought;
    return {};
  });
}

size_t kvkeep_block_num_layers(const kvkeep_block* block) {
  return block != nullptr ? block->layers.size() : 0;
}

kvkeep_status kvkeep_block_layer(const kvkeep_block* block, size_t index, kvkeep_layer* layer) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(layer, "layer"));
    *layer = {};
    KVKEEP_TRY(not_null(block, "block"));
    if (index >= block->layers.size()) {
      return kvkeep::capi::invalid("index: " + std::to_string(index) + " of " +
                                   std::to_string(block->layers.size()) + " layers");
    }
    const auto& shown = block->layers[index];
    if (!shown.flat) {
      return Status(kvkeep::Code::kUnimplemented,
                    "layer " + std::to_string(index) + ": a nested state; use C++ or Python");
    }
    const auto& state = std::get<kvkeep::NState>(block->loaded.layers[index]);
    layer->tensors = shown.tensors.data();
    layer->num_tensors = shown.tensors.size();
    layer->class_name = state.class_name.empty() ? nullptr : state.class_name.c_str();
    return {};
  });
}

uint32_t kvkeep_block_token_count(const kvkeep_block* block) {
  return block != nullptr ? block->loaded.info.token_count : 0;
}

kvkeep_source kvkeep_block_source(const kvkeep_block* block) {
  if (block == nullptr) return KVKEEP_DISK;
  switch (block->loaded.source) {
    case kvkeep::Source::kHot:
      return KVKEEP_HOT;
    case kvkeep::Source::kPending:
      return KVKEEP_PENDING;
    case kvkeep::Source::kDisk:
      return KVKEEP_DISK;
  }
  return KVKEEP_DISK;
}

const char* kvkeep_block_model_name(const kvkeep_block* block) {
  return block != nullptr ? block->loaded.info.model_name.c_str() : "";
}

const char* kvkeep_block_layer_type(const kvkeep_block* block, size_t index) {
  if (block == nullptr || !block->loaded.info.layer_types) return nullptr;
  const auto& types = *block->loaded.info.layer_types;
  return index < types.size() ? types[index].c_str() : nullptr;
}

kvkeep_key kvkeep_block_parent(const kvkeep_block* block) {
  if (block == nullptr || !block->loaded.info.parent) return {nullptr, 0};
  return kvkeep::capi::view_of(*block->loaded.info.parent);
}

void kvkeep_block_free(kvkeep_block* block) { delete block; }
