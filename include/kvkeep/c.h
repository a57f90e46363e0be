// kvkeep for C, and for languages that call C. Also valid C++.
//
//   kvkeep_options options = {0};
//   options.struct_size = sizeof options;
//   options.cache_dir = "blocks";
//   options.max_size_bytes = 10ull << 30;
//   kvkeep_cache* cache;
//   if (kvkeep_open(&options, &cache) != KVKEEP_OK) return complain(kvkeep_error_message());
//   kvkeep_block* block;
//   if (kvkeep_load(cache, key, &block) == KVKEEP_OK) {
//     ...                         // Tensors are views, valid until the block is freed.
//     kvkeep_block_free(block);
//   }
//   kvkeep_cache_free(cache);     // Writes what is not on disk yet.
//
// Handles:   made by a call that returns KVKEEP_OK, ended by the _free of the same name, which
//            takes NULL. After a failure the place for the handle holds NULL. Blocks may outlive
//            their cache. A cache may be used from any thread, other handles by one at a time.
// Structs:   those with struct_size are set to zero first and struct_size to their size, so that
//            later versions can append fields. Zero is the default of every field.
// Errors:    a kvkeep_status; message and reason of the calling thread's last call that returned
//            one are at kvkeep_error_message() and kvkeep_error_reason(). No exception leaves.
// Arguments: pointers may not be NULL and must stay valid during the call only, unless it says
//            otherwise. Sizes are bytes. Texts are UTF-8 and end with a zero byte.
// Not here:  nested states, cache lists and TurboQuant states, shared budgets, own
//            clocks and loggers. kvkeep.h has them, in C++.
// Calls into user code: none.
#pragma once

#include <stddef.h>
#include <stdint.h>

// NOLINTBEGIN(readability-identifier-naming, modernize-use-using)
#ifdef __cplusplus
extern "C" {
#endif

// ---- Status

typedef enum kvkeep_status {
  KVKEEP_OK = 0,
  KVKEEP_NOT_FOUND = 1,            // A miss. For a cache this is an answer, not a fault.
  KVKEEP_INVALID_ARGUMENT = 2,     // The message says which argument, and what is accepted.
  KVKEEP_FAILED_PRECONDITION = 3,  // Closed, used by another process, or incompatible.
  KVKEEP_RESOURCE_EXHAUSTED = 4,   // Too large, or no room or memory could be found.
  KVKEEP_UNAVAILABLE = 5,          // The system failed an operation that may work later.
  KVKEEP_DATA_LOSS = 6,            // Stored bytes contradict their digest or structure.
  KVKEEP_UNIMPLEMENTED = 7,      // A dtype or layer state that cannot be stored, or not shown in C.
  KVKEEP_DEADLINE_EXCEEDED = 8,  // The time allowed ran out; the message says what is left.
  KVKEEP_INTERNAL = 9            // A fault of kvkeep.
} kvkeep_status;

// "not_found", …
const char* kvkeep_status_name(kvkeep_status status);
// What the last call of this thread that returns a kvkeep_status has to say: for a person, "" after
// KVKEEP_OK. At most 511 bytes, valid until the thread's next such call.
const char* kvkeep_error_message(void);
// Why the last load missed or the last save was refused: a name of the tables in kvkeep/reason.h,
// such as "damaged" or "no_space"; else "".
const char* kvkeep_error_reason(void);
// "0.1.0": the version of the library that is linked.
const char* kvkeep_version(void);

// ---- Keys

// An opaque key of 1 to 119 bytes; of no bytes where there is none.
typedef struct kvkeep_key {
  const void* data;
  size_t size;
} kvkeep_key;

// A name and its value, such as "model" and "my-model".
typedef struct kvkeep_field {
  const char* name;
  const char* value;
} kvkeep_field;

typedef enum kvkeep_extra_type {
  KVKEEP_EXTRA_BYTES = 0,
  KVKEEP_EXTRA_TEXT = 1,  // UTF-8.
  KVKEEP_EXTRA_INTEGER = 2
} kvkeep_extra_type;

// What else a block's state depends on, such as the digest of an image behind placeholder tokens.
typedef struct kvkeep_extra {
  size_t block;      // Which block of the prompt, from 0.
  int32_t type;      // A kvkeep_extra_type.
  const void* data;  // Of bytes or text, `size` bytes; may be NULL if there are none.
  size_t size;
  int64_t integer;
} kvkeep_extra;

typedef struct kvkeep_chain_options {
  size_t struct_size;
  const kvkeep_field* fields;  // What changes the state of a model for equal tokens. May be NULL.
  size_t num_fields;
  uint32_t block_size;  // Tokens of a full block; at least 1.
  int32_t partial;      // Not 0: also the key of a shorter last block.
  // How keys are made: "kvkeep-1", also if NULL; "omlx-1" for directories of oMLX, whose only field
  // is "model".
  const char* recipe;
  const kvkeep_extra* extras;  // In the order of their blocks. May be NULL.
  size_t num_extras;
} kvkeep_chain_options;

typedef struct kvkeep_keys kvkeep_keys;

// The keys of a prompt's blocks, in order: kvkeep/chain_keys.h. `tokens` may be NULL if there are
// none.
kvkeep_status kvkeep_chain_keys(const uint32_t* tokens, size_t num_tokens,
                                const kvkeep_chain_options* options, kvkeep_keys** keys);
size_t kvkeep_keys_count(const kvkeep_keys* keys);
// kvkeep_keys_count() keys of 32 bytes, valid until `keys` is freed.
const kvkeep_key* kvkeep_keys_data(const kvkeep_keys* keys);
void kvkeep_keys_free(kvkeep_keys* keys);

// ---- A cache

typedef enum kvkeep_durability {
  KVKEEP_DURABILITY_NONE = 0,  // Damage by power loss is detected and is a miss.
  KVKEEP_DURABILITY_DATA = 1,  // The file's contents are on stable storage before it counts.
  KVKEEP_DURABILITY_DATA_AND_DIR = 2
} kvkeep_durability;

// kvkeep/options.h says more. Seconds: 0 is the default, negative is none.
typedef struct kvkeep_options {
  size_t struct_size;
  const char* cache_dir;    // Created if missing. Required, unless hot_only.
  uint64_t max_size_bytes;  // Bytes that the directory may occupy. Required, unless hot_only.
  uint64_t hot_max_bytes;   // RAM for blocks that were saved or loaded. 0: no hot tier.
  uint64_t ram_max_bytes;   // RAM for all blocks. 0: half of the RAM.
  uint64_t min_free_bytes;  // Of the disk, for others. 0: 5 % of it, at most 5 GiB.
  // What blocks must be for to be served and saved here. NULL or 0: not checked.
  const char* model_name;
  const char* const* layer_types;
  size_t num_layer_types;
  const kvkeep_field* identity;
  size_t num_identity;
  double flush_after_seconds;     // Default 2. None: blocks are written when they leave RAM.
  double queue_wait_seconds;      // Default 1.
  double close_deadline_seconds;  // Default 60, with a hot tier 120.
  double io_deadline_seconds;     // Default 5.
  uint32_t num_layers;
  uint32_t block_size;           // Tokens of a full block.
  uint32_t pending_cap;          // Blocks that may wait to be written. 0: from the size of the RAM.
  int32_t hot_only;              // Not 0: no disk at all.
  int32_t write_through;         // Not 0: new blocks go to disk at once and are not kept in RAM.
  int32_t require_digest;        // Not 0: refuse files without a digest (those of oMLX).
  int32_t durability;            // A kvkeep_durability.
  uint32_t preload_min_blocks;   // Default 4.
  uint32_t preload_max_workers;  // Default 8.
  int32_t eviction_lru;          // Not 0: by last use alone; else no block leaves before those that
                                 // continue it.
} kvkeep_options;

typedef struct kvkeep_cache kvkeep_cache;

// Blocks on the disk. KVKEEP_INVALID_ARGUMENT, KVKEEP_FAILED_PRECONDITION, KVKEEP_UNAVAILABLE.
kvkeep_status kvkeep_open(const kvkeep_options* options, kvkeep_cache** cache);

// Waits until everything accepted before the call is on disk. `timeout_seconds`: negative waits
// without limit. `written` and `failed`: blocks; either may be NULL.
kvkeep_status kvkeep_flush(kvkeep_cache* cache, double timeout_seconds, uint64_t* written,
                           uint64_t* failed);
// Writes what is not on disk yet and gives the directory back; afterwards nothing is found, and
// loads, saves, removals and flushes answer KVKEEP_FAILED_PRECONDITION. A second close reports the
// same as the first. `timeout_seconds`: negative takes close_deadline_seconds.
kvkeep_status kvkeep_close(kvkeep_cache* cache, double timeout_seconds, uint64_t* written,
                           uint64_t* failed);
// Closes the cache if it is open. No other call may be using it.
void kvkeep_cache_free(kvkeep_cache* cache);

// ---- Saving

// Values are those of kvkeep/tensor.h; names and widths are those of safetensors.
typedef enum kvkeep_dtype {
  KVKEEP_F16 = 0,
  KVKEEP_F32 = 1,
  KVKEEP_BF16 = 2,
  KVKEEP_I8 = 3,
  KVKEEP_I16 = 4,
  KVKEEP_I32 = 5,
  KVKEEP_I64 = 6,
  KVKEEP_U8 = 7,
  KVKEEP_U16 = 8,
  KVKEEP_U32 = 9,
  KVKEEP_U64 = 10,
  KVKEEP_BOOL = 11,
  KVKEEP_F8_E4M3 = 12,
  KVKEEP_F8_E5M2 = 13,
  KVKEEP_F8_E8M0 = 14,
  KVKEEP_NO_TENSOR = 100  // Stands for the absence of a tensor; nothing else of it is looked at.
} kvkeep_dtype;

typedef struct kvkeep_tensor {
  const void* data;             // Element [0, 0, …]. May be NULL if there are no elements.
  const uint64_t* shape;        // num_axes lengths, outermost first.
  const int64_t* byte_strides;  // From one element to the next, per axis. NULL: row-major.
  uint32_t num_axes;            // At most 32; 0 is a scalar.
  int32_t dtype;                // A kvkeep_dtype.
} kvkeep_tensor;

// Bytes of all elements; 0 for a tensor that is malformed or absent.
uint64_t kvkeep_tensor_bytes(const kvkeep_tensor* tensor);

// The state of one layer: a pair of tensors, keys first, or any other number of them.
typedef struct kvkeep_layer {
  const kvkeep_tensor* tensors;
  size_t num_tensors;
  const char* class_name;  // Of the state, such as "ArraysCache". NULL: none.
} kvkeep_layer;

typedef struct kvkeep_block_input {
  size_t struct_size;
  const kvkeep_layer* layers;
  size_t num_layers;
  const char* const* layer_types;  // num_layers class names of the layers' caches, or NULL.
  const char* model_name;          // NULL: the model of the cache.
  kvkeep_key parent;               // Key of the block before this one, or no bytes.
  uint32_t token_count;
  int32_t write_through;  // Not 0: to disk at once, also where the cache keeps new blocks in RAM.
} kvkeep_block_input;

typedef enum kvkeep_save_outcome {
  KVKEEP_STORED = 0,   // Kept in RAM; written later.
  KVKEEP_QUEUED = 1,   // On its way to disk.
  KVKEEP_PRESENT = 2,  // Was there.
  KVKEEP_WRITTEN = 3   // By the call itself: the queue stayed full.
} kvkeep_save_outcome;

// Copies the block; loadable at once. `outcome` may be NULL. May wait queue_wait_seconds for a full
// queue and unlink a bounded number of files. After a refusal kvkeep_error_reason() says why.
kvkeep_status kvkeep_save(kvkeep_cache* cache, kvkeep_key key, const kvkeep_block_input* block,
                          kvkeep_save_outcome* outcome);

// ---- Loading

typedef struct kvkeep_block kvkeep_block;

typedef enum kvkeep_source {
  KVKEEP_HOT = 0,      // From the hot tier.
  KVKEEP_PENDING = 1,  // From RAM, on its way to disk.
  KVKEEP_DISK = 2      // Read and verified.
} kvkeep_source;

// KVKEEP_NOT_FOUND (a miss), KVKEEP_DATA_LOSS (damaged), KVKEEP_UNAVAILABLE (the read failed);
// kvkeep_error_reason() says more. Reads the disk unless the block is in RAM.
kvkeep_status kvkeep_load(kvkeep_cache* cache, kvkeep_key key, kvkeep_block** block);
// The blocks of keys[0], keys[1], … up to the first miss, with one submission to the disk.
// `blocks` has num_keys places; those from *num_blocks on become NULL. KVKEEP_OK also if all miss;
// kvkeep_error_message() and kvkeep_error_reason() then tell of the miss.
kvkeep_status kvkeep_load_prefix(kvkeep_cache* cache, const kvkeep_key* keys, size_t num_keys,
                                 kvkeep_block** blocks, size_t* num_blocks);
// Brings blocks that are only on disk into the hot tier, as far as it has room. `num_loaded` may be
// NULL. Reads the disk.
kvkeep_status kvkeep_preload(kvkeep_cache* cache, const kvkeep_key* keys, size_t num_keys,
                             size_t* num_loaded);

size_t kvkeep_block_num_layers(const kvkeep_block* block);
// A view of layer `index`, valid until the block is freed. KVKEEP_UNIMPLEMENTED for a nested state,
// a cache list or a TurboQuant state.
kvkeep_status kvkeep_block_layer(const kvkeep_block* block, size_t index, kvkeep_layer* layer);
uint32_t kvkeep_block_token_count(const kvkeep_block* block);
kvkeep_source kvkeep_block_source(const kvkeep_block* block);
const char* kvkeep_block_model_name(const kvkeep_block* block);
// The class name of the layer's cache, or NULL if the save did not name it.
const char* kvkeep_block_layer_type(const kvkeep_block* block, size_t index);
// Valid until the block is freed. No bytes if the save did not name it.
kvkeep_key kvkeep_block_parent(const kvkeep_block* block);
void kvkeep_block_free(kvkeep_block* block);

// ---- Asking and removing

// *present: 1 if a load would have found the block a moment ago, else 0. Memory only.
kvkeep_status kvkeep_has(kvkeep_cache* cache, kvkeep_key key, int* present);
// *text: "hot", "pending" or "disk", or a miss as its reason and a sentence, such as "evicted:
// block 0a1b2c3d4e5f6071: gave room to another block". End it with kvkeep_text_free(). Memory only.
kvkeep_status kvkeep_why(kvkeep_cache* cache, kvkeep_key key, char** text);
void kvkeep_text_free(char* text);
// Removes the block everywhere. *removed: 1 if something was; may be NULL.
kvkeep_status kvkeep_delete(kvkeep_cache* cache, kvkeep_key key, int* removed);
// Stops serving the block; its file stays, counted, until it is evicted or replaced. *served: 1 if
// the block was served; may be NULL. Memory only.
kvkeep_status kvkeep_forget(kvkeep_cache* cache, kvkeep_key key, int* served);
// The block loaded, but proved to be unusable: out of every tier, its file is kept aside.
kvkeep_status kvkeep_report_bad(kvkeep_cache* cache, kvkeep_key key, int* removed);
// Removes every block from every tier. *num_blocks: how many; may be NULL. KVKEEP_UNAVAILABLE if
// files could not be unlinked. Blocks on the disk.
kvkeep_status kvkeep_clear(kvkeep_cache* cache, size_t* num_blocks);
// Lets the hot tier go; what is not on disk yet goes to the write queue, and stays if that is full.
// *num_blocks: how many have left; may be NULL.
kvkeep_status kvkeep_clear_hot(kvkeep_cache* cache, size_t* num_blocks);

// ---- Statistics

// One consistent snapshot: the figures of kvkeep/stats.h by name, with "miss_reason.damaged" and
// "save_refused.no_space" for those that are counted by reason.
typedef struct kvkeep_stats kvkeep_stats;

kvkeep_status kvkeep_stats_read(kvkeep_cache* cache, kvkeep_stats** stats);
// KVKEEP_NOT_FOUND for an unknown name.
kvkeep_status kvkeep_stats_get(const kvkeep_stats* stats, const char* name, uint64_t* value);
// All of them, in the order of the table: 0 <= index < count. Beyond that "" and 0.
size_t kvkeep_stats_count(const kvkeep_stats* stats);
const char* kvkeep_stats_name(const kvkeep_stats* stats, size_t index);
uint64_t kvkeep_stats_value(const kvkeep_stats* stats, size_t index);
// The same as one JSON object, valid until `stats` is freed.
const char* kvkeep_stats_json(const kvkeep_stats* stats);
void kvkeep_stats_free(kvkeep_stats* stats);

#ifdef __cplusplus
}
#endif
// NOLINTEND(readability-identifier-naming, modernize-use-using)
