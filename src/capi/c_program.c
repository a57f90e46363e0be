/* c_program STORE: uses the whole C API on a store that does not exist yet. Prints nothing and ends
 * with 0, or names the first check that does not hold. */
#include <kvkeep/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      printf("line %d: %s does not hold (%s)\n", __LINE__, #condition, kvkeep_error_message()); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)
#define OK(call) CHECK((call) == KVKEEP_OK)
#define REFUSED(call, code, word)                          \
  do {                                                     \
    CHECK((call) == (code));                               \
    CHECK(strstr(kvkeep_error_message(), (word)) != NULL); \
  } while (0)

enum { kTokens = 16, kLayers = 2, kWidth = 8 };

static float numbers[kLayers][2][kTokens * kWidth];
static const uint64_t shape[3] = {1, kTokens, kWidth};
static const uint64_t turned_shape[2] = {kWidth, kTokens};
static const int64_t turned_strides[2] = {sizeof(float), kWidth * sizeof(float)};
static const char* const layer_types[kLayers] = {"KVCache", "KVCache"};

static kvkeep_tensor tensor_of(int layer, int which) {
  kvkeep_tensor tensor = {0};
  tensor.data = numbers[layer][which];
  tensor.shape = shape;
  tensor.num_axes = 3;
  tensor.dtype = KVKEEP_F32;
  return tensor;
}

static kvkeep_options options_for(const char* store) {
  static const kvkeep_field identity[1] = {{"kv_dtype", "f32"}};
  kvkeep_options options = {0};
  options.struct_size = sizeof options;
  options.cache_dir = store;
  options.max_size_bytes = 8 << 20;
  options.hot_max_bytes = 4 << 20;
  options.flush_after_seconds = -1;
  options.model_name = "a model";
  options.block_size = kTokens;
  options.identity = identity;
  options.num_identity = 1;
  options.preload_min_blocks = 1;
  return options;
}

static kvkeep_keys* chain(uint32_t num_tokens) {
  static const kvkeep_field fields[1] = {{"model", "a model"}};
  uint32_t tokens[64];
  kvkeep_chain_options options = {0};
  kvkeep_keys* keys;
  uint32_t i;
  options.struct_size = sizeof options;
  options.fields = fields;
  options.num_fields = 1;
  options.block_size = kTokens;
  for (i = 0; i < num_tokens; ++i) tokens[i] = i;
  OK(kvkeep_chain_keys(tokens, num_tokens, &options, &keys));
  return keys;
}

/* The keys of `num_tokens` tokens in blocks of four, with these extras. */
static kvkeep_keys* keys_with(const char* recipe, const kvkeep_field* fields, size_t num_fields,
                              const uint32_t* tokens, size_t num_tokens, const kvkeep_extra* extras,
                              size_t num_extras) {
  kvkeep_chain_options options = {0};
  kvkeep_keys* keys;
  options.struct_size = sizeof options;
  options.recipe = recipe;
  options.fields = fields;
  options.num_fields = num_fields;
  options.block_size = 4;
  options.extras = extras;
  options.num_extras = num_extras;
  OK(kvkeep_chain_keys(tokens, num_tokens, &options, &keys));
  return keys;
}

/* The keys of the tokens 1, 2, … 8 in blocks of four. */
static kvkeep_keys* two_keys(const char* recipe, const kvkeep_field* fields, size_t num_fields) {
  static const uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  kvkeep_keys* keys = keys_with(recipe, fields, num_fields, tokens, 8, NULL, 0);
  CHECK(kvkeep_keys_count(keys) == 2);
  return keys;
}

static void check_key(const kvkeep_keys* keys, size_t which, const char* hex) {
  const kvkeep_key key = kvkeep_keys_data(keys)[which];
  char text[65];
  size_t i;
  CHECK(key.size == 32);
  for (i = 0; i < key.size; ++i) {
    snprintf(text + 2 * i, 3, "%02x", ((const unsigned char*)key.data)[i]);
  }
  CHECK(strcmp(text, hex) == 0);
}

static void check_published_extras(void) {
  static const kvkeep_field model[1] = {{"model", "test-model"}};
  static const kvkeep_field salted[2] = {{"model", "org/\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab"},
                                         {"salt", "t1"}};
  static const uint32_t largest[8] = {1, 2, 3, 4, 5, 6, 7, 4294967295u};
  static const uint32_t twelve[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  static const kvkeep_extra three[3] = {{1, KVKEEP_EXTRA_TEXT, "img:ab", 6, 0},
                                        {1, KVKEEP_EXTRA_BYTES, "\x00\xff", 2, 0},
                                        {1, KVKEEP_EXTRA_INTEGER, NULL, 0, -1}};
  static const kvkeep_extra image[1] = {{2, KVKEEP_EXTRA_TEXT, "img", 3, 0}};
  kvkeep_keys* keys = keys_with("kvkeep-1", salted, 2, largest, 8, three, 3);
  check_key(keys, 1, "f28774e7be39f374fc7f54860589130e41e889e388ccb9263d066e9933f3704d");
  kvkeep_keys_free(keys);
  keys = keys_with("omlx-1", model, 1, twelve, 12, image, 1);
  check_key(keys, 1, "ee54080dd391db972147df525bb9e7d56d4c7f74383510a2390dda6aca49b42d");
  check_key(keys, 2, "7a5267b97ec292291c0939db962d811869022f80aeef480ed5875d7e52ee0f49");
  kvkeep_keys_free(keys);
}

static void check_published_keys(void) {
  static const kvkeep_field model[1] = {{"model", "test-model"}};
  static const kvkeep_field salted[2] = {{"model", "org/\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab"},
                                         {"salt", "t1"}};
  kvkeep_keys* keys = two_keys("omlx-1", model, 1);
  check_key(keys, 0, "eccd492fb02022cf654b44da617cf8fb3caa40d7ae912bc473a99850f294f768");
  check_key(keys, 1, "ee54080dd391db972147df525bb9e7d56d4c7f74383510a2390dda6aca49b42d");
  kvkeep_keys_free(keys);
  keys = two_keys("omlx-1", NULL, 0);
  check_key(keys, 0, "2feaaca2a94b2a2dee4d7445e77309c19ddacd3b61c00b07a3517825a3661443");
  kvkeep_keys_free(keys);
  keys = two_keys("kvkeep-1", salted, 2);
  check_key(keys, 0, "d215ddaab830c9bbf5021136eb94a39b152b5e8104a956bdd3e0141d5e49aa1b");
  kvkeep_keys_free(keys);
  keys = two_keys(NULL, salted, 2);
  check_key(keys, 0, "d215ddaab830c9bbf5021136eb94a39b152b5e8104a956bdd3e0141d5e49aa1b");
  kvkeep_keys_free(keys);
}

/* A block of a full pair, and of a pair whose keys are a transposed view and whose values are
 * absent. */
static kvkeep_block_input block_of(kvkeep_layer layers[kLayers], kvkeep_tensor tensors[4]) {
  kvkeep_block_input block = {0};
  block.struct_size = sizeof block;
  tensors[0] = tensor_of(0, 0);
  tensors[1] = tensor_of(0, 1);
  tensors[2] = tensor_of(1, 0);
  tensors[2].shape = turned_shape;
  tensors[2].byte_strides = turned_strides;
  tensors[2].num_axes = 2;
  tensors[3].dtype = KVKEEP_NO_TENSOR;
  layers[0].tensors = tensors;
  layers[0].num_tensors = 2;
  layers[0].class_name = NULL;
  layers[1].tensors = tensors + 2;
  layers[1].num_tensors = 2;
  layers[1].class_name = NULL;
  block.layers = layers;
  block.num_layers = kLayers;
  block.layer_types = layer_types;
  block.token_count = kTokens;
  return block;
}

static void compare(const kvkeep_block* block) {
  kvkeep_layer layer;
  const float* turned;
  int token, column;
  CHECK(kvkeep_block_num_layers(block) == kLayers);
  CHECK(kvkeep_block_token_count(block) == kTokens);
  CHECK(strcmp(kvkeep_block_model_name(block), "a model") == 0);
  CHECK(strcmp(kvkeep_block_layer_type(block, 1), "KVCache") == 0);
  CHECK(kvkeep_block_layer_type(block, 2) == NULL);
  OK(kvkeep_block_layer(block, 0, &layer));
  CHECK(layer.num_tensors == 2 && layer.class_name == NULL);
  CHECK(layer.tensors[1].dtype == KVKEEP_F32 && layer.tensors[1].num_axes == 3);
  CHECK(memcmp(layer.tensors[1].shape, shape, sizeof shape) == 0);
  CHECK(kvkeep_tensor_bytes(&layer.tensors[1]) == sizeof numbers[0][1]);
  CHECK(memcmp(layer.tensors[0].data, numbers[0][0], sizeof numbers[0][0]) == 0);
  CHECK(memcmp(layer.tensors[1].data, numbers[0][1], sizeof numbers[0][1]) == 0);
  OK(kvkeep_block_layer(block, 1, &layer));
  CHECK(memcmp(layer.tensors[0].shape, turned_shape, sizeof turned_shape) == 0);
  turned = layer.tensors[0].data;
  for (token = 0; token < kTokens; ++token) {
    for (column = 0; column < kWidth; ++column) {
      CHECK(turned[column * kTokens + token] == numbers[1][0][token * kWidth + column]);
    }
  }
  CHECK(layer.tensors[1].dtype == KVKEEP_NO_TENSOR && kvkeep_tensor_bytes(&layer.tensors[1]) == 0);
}

static uint64_t figure(kvkeep_cache* cache, const char* name) {
  kvkeep_stats* stats;
  uint64_t value;
  OK(kvkeep_stats_read(cache, &stats));
  OK(kvkeep_stats_get(stats, name, &value));
  kvkeep_stats_free(stats);
  return value;
}

static void save_three(kvkeep_cache* cache, const kvkeep_key* keys) {
  kvkeep_layer layers[kLayers];
  kvkeep_tensor tensors[4];
  kvkeep_block_input block = block_of(layers, tensors);
  kvkeep_save_outcome outcome;
  OK(kvkeep_save(cache, keys[0], &block, &outcome));
  CHECK(outcome == KVKEEP_STORED);
  block.parent = keys[0];
  block.write_through = 1;
  OK(kvkeep_save(cache, keys[1], &block, &outcome));
  CHECK(outcome == KVKEEP_QUEUED);
  OK(kvkeep_save(cache, keys[1], &block, &outcome));
  CHECK(outcome == KVKEEP_PRESENT);
  OK(kvkeep_save(cache, keys[2], &block, NULL));
}

static void use(kvkeep_cache* cache, const kvkeep_key* keys) {
  kvkeep_block* block;
  uint64_t written, failed;
  size_t count;
  int yes;
  char* text;
  OK(kvkeep_load(cache, keys[0], &block));
  CHECK(kvkeep_block_source(block) == KVKEEP_HOT && kvkeep_block_parent(block).size == 0);
  compare(block);
  kvkeep_block_free(block);
  OK(kvkeep_why(cache, keys[0], &text));
  CHECK(strcmp(text, "hot") == 0);
  kvkeep_text_free(text);
  OK(kvkeep_clear_hot(cache, &count)); /* Spills: the block has to be on disk after the flush. */
  CHECK(count == 1);
  OK(kvkeep_flush(cache, -1, &written, &failed));
  CHECK(failed == 0 && figure(cache, "saves_persisted") == 3 &&
        figure(cache, "ssd_write_drops") == 0);
  OK(kvkeep_has(cache, keys[0], &yes));
  CHECK(yes == 1);
  OK(kvkeep_delete(cache, keys[2], &yes));
  CHECK(yes == 1);
  OK(kvkeep_delete(cache, keys[2], NULL));
  CHECK(kvkeep_load(cache, keys[2], &block) == KVKEEP_NOT_FOUND && block == NULL);
  CHECK(strcmp(kvkeep_error_reason(), "deleted") == 0);
  OK(kvkeep_why(cache, keys[2], &text));
  CHECK(strncmp(text, "deleted: ", 9) == 0);
  kvkeep_text_free(text);
}

static void use_closed(kvkeep_cache* cache, kvkeep_key key) {
  kvkeep_layer layers[kLayers];
  kvkeep_tensor tensors[4];
  const kvkeep_block_input input = block_of(layers, tensors);
  kvkeep_block* block;
  size_t count;
  int yes;
  REFUSED(kvkeep_save(cache, key, &input, NULL), KVKEEP_FAILED_PRECONDITION, "closed");
  CHECK(strcmp(kvkeep_error_reason(), "closed") == 0);
  REFUSED(kvkeep_load(cache, key, &block), KVKEEP_FAILED_PRECONDITION, "closed");
  REFUSED(kvkeep_load_prefix(cache, &key, 1, &block, &count), KVKEEP_FAILED_PRECONDITION, "closed");
  REFUSED(kvkeep_delete(cache, key, NULL), KVKEEP_FAILED_PRECONDITION, "closed");
  REFUSED(kvkeep_report_bad(cache, key, NULL), KVKEEP_FAILED_PRECONDITION, "closed");
  REFUSED(kvkeep_flush(cache, 0, NULL, NULL), KVKEEP_FAILED_PRECONDITION, "closed");
  OK(kvkeep_has(cache, key, &yes));
  CHECK(yes == 0);
}

static void use_reopened(kvkeep_cache* cache, const kvkeep_key* keys) {
  kvkeep_block* blocks[3];
  size_t count, left, i;
  int yes;
  OK(kvkeep_preload(cache, keys, 1, &count));
  CHECK(count == 1);
  OK(kvkeep_load_prefix(cache, keys, 3, blocks, &count));
  CHECK(count == 2 && blocks[2] == NULL && strcmp(kvkeep_error_reason(), "absent") == 0);
  CHECK(strstr(kvkeep_error_message(), "never stored") != NULL);
  CHECK(kvkeep_block_source(blocks[0]) == KVKEEP_HOT);
  CHECK(kvkeep_block_source(blocks[1]) == KVKEEP_DISK);
  CHECK(kvkeep_block_parent(blocks[1]).size == keys[0].size);
  CHECK(memcmp(kvkeep_block_parent(blocks[1]).data, keys[0].data, keys[0].size) == 0);
  OK(kvkeep_forget(cache, keys[0], &yes));
  CHECK(yes == 1);
  OK(kvkeep_forget(cache, keys[0], &yes));
  CHECK(yes == 0);
  OK(kvkeep_report_bad(cache, keys[1], &yes));
  CHECK(yes == 1 && figure(cache, "reported_bad") == 1);
  OK(kvkeep_clear(cache, &left));
  CHECK(left == 1);
  OK(kvkeep_close(cache, -1, NULL, NULL));
  use_closed(cache, keys[0]);
  kvkeep_cache_free(cache);
  for (i = 0; i < count; ++i) {
    compare(blocks[i]); /* Views outlive the cache. */
    kvkeep_block_free(blocks[i]);
  }
}

static void read_stats(kvkeep_cache* cache) {
  kvkeep_stats* stats;
  uint64_t value;
  size_t i;
  OK(kvkeep_stats_read(cache, &stats));
  CHECK(kvkeep_stats_count(stats) > 60);
  for (i = 0; i < kvkeep_stats_count(stats); ++i) {
    OK(kvkeep_stats_get(stats, kvkeep_stats_name(stats, i), &value));
    CHECK(value == kvkeep_stats_value(stats, i));
  }
  OK(kvkeep_stats_get(stats, "miss_reason.deleted", &value));
  CHECK(value == 1);
  CHECK(strstr(kvkeep_stats_json(stats), "\"load_hits_hot\":1") != NULL);
  REFUSED(kvkeep_stats_get(stats, "no such", &value), KVKEEP_NOT_FOUND, "no such");
  CHECK(kvkeep_stats_name(stats, 1000)[0] == '\0' && kvkeep_stats_value(stats, 1000) == 0);
  kvkeep_stats_free(stats);
}

static void misuse_open(const char* store) {
  kvkeep_options options = options_for(store);
  struct {
    kvkeep_options options;
    uint64_t later;
  } newer = {0};
  kvkeep_cache* cache = NULL;
  REFUSED(kvkeep_open(NULL, &cache), KVKEEP_INVALID_ARGUMENT, "options: NULL");
  REFUSED(kvkeep_open(&options, NULL), KVKEEP_INVALID_ARGUMENT, "cache: NULL");
  options.struct_size = 0;
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "struct_size");
  options.struct_size = sizeof options - 1;
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "struct_size");
  options.struct_size = (size_t)1 << 40;
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "struct_size");
  newer.options = options_for(store);
  newer.options.struct_size = sizeof newer;
  newer.later = 1;
  REFUSED(kvkeep_open(&newer.options, &cache), KVKEEP_INVALID_ARGUMENT, "does not know");
  newer.later = 0;
  newer.options.max_size_bytes = 0;
  REFUSED(kvkeep_open(&newer.options, &cache), KVKEEP_INVALID_ARGUMENT, "max_size_bytes");
  options = options_for(store);
  options.durability = 7;
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "options.durability");
  options = options_for(store);
  options.num_layer_types = 1;
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "options.layer_types: NULL");
  options = options_for(store);
  options.io_deadline_seconds = strtod("nan", NULL);
  REFUSED(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT, "options.io_deadline_seconds");
  CHECK(cache == NULL);
}

static void misuse_save(kvkeep_cache* cache, kvkeep_key key) {
  const kvkeep_key empty = {"", 0}, no_data = {NULL, 3};
  kvkeep_layer layers[kLayers];
  kvkeep_tensor tensors[4];
  kvkeep_block_input block = block_of(layers, tensors);
  REFUSED(kvkeep_save(NULL, key, &block, NULL), KVKEEP_INVALID_ARGUMENT, "cache: NULL");
  REFUSED(kvkeep_save(cache, key, NULL, NULL), KVKEEP_INVALID_ARGUMENT, "block: NULL");
  REFUSED(kvkeep_save(cache, empty, &block, NULL), KVKEEP_INVALID_ARGUMENT, "key: ");
  REFUSED(kvkeep_save(cache, no_data, &block, NULL), KVKEEP_INVALID_ARGUMENT, "key.data: NULL");
  tensors[1].dtype = 15;
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT,
          "block.layers[0].tensors[1].dtype: 15");
  tensors[1].dtype = KVKEEP_F32;
  tensors[1].shape = NULL;
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT, "shape: NULL");
  tensors[1].shape = shape;
  tensors[1].data = NULL;
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT, "no data");
  tensors[1].num_axes = 33;
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT, "num_axes");
  layers[1].tensors = NULL;
  tensors[1] = tensors[0];
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT,
          "block.layers[1].tensors: NULL");
  block = block_of(layers, tensors);
  block.model_name = "another model";
  CHECK(kvkeep_save(cache, key, &block, NULL) == KVKEEP_FAILED_PRECONDITION);
  CHECK(strcmp(kvkeep_error_reason(), "model") == 0);
  block.struct_size = 1;
  REFUSED(kvkeep_save(cache, key, &block, NULL), KVKEEP_INVALID_ARGUMENT, "struct_size");
}

static void misuse_keys(void) {
  const kvkeep_field adapter = {"adapter", "a"};
  kvkeep_chain_options options = {0};
  kvkeep_keys* keys;
  options.struct_size = sizeof options;
  REFUSED(kvkeep_chain_keys(NULL, 0, &options, &keys), KVKEEP_INVALID_ARGUMENT, "block_size");
  options.block_size = 1;
  REFUSED(kvkeep_chain_keys(NULL, 1, &options, &keys), KVKEEP_INVALID_ARGUMENT, "tokens: NULL");
  {
    kvkeep_extra extra = {1, KVKEEP_EXTRA_INTEGER, NULL, 0, 7};
    static const uint32_t four[4] = {1, 2, 3, 4};
    options.block_size = 4;
    options.extras = &extra;
    options.num_extras = 1;
    REFUSED(kvkeep_chain_keys(four, 4, &options, &keys), KVKEEP_INVALID_ARGUMENT,
            "options.extras[0].block: 1; the prompt has 1");
    extra.block = 0;
    extra.type = 9;
    REFUSED(kvkeep_chain_keys(four, 4, &options, &keys), KVKEEP_INVALID_ARGUMENT,
            "options.extras[0].type: 9");
    options.extras = NULL;
    REFUSED(kvkeep_chain_keys(four, 4, &options, &keys), KVKEEP_INVALID_ARGUMENT,
            "options.extras: NULL");
    options.num_extras = 0;
  }
  options.recipe = "omlx";
  REFUSED(kvkeep_chain_keys(NULL, 0, &options, &keys), KVKEEP_INVALID_ARGUMENT,
          "options.recipe: 'omlx'");
  options.recipe = "omlx-1";
  options.fields = &adapter;
  options.num_fields = 1;
  REFUSED(kvkeep_chain_keys(NULL, 0, &options, &keys), KVKEEP_INVALID_ARGUMENT, "adapter");
  options.num_fields = 0;
  OK(kvkeep_chain_keys(NULL, 0, &options, &keys));
  CHECK(kvkeep_error_message()[0] == '\0' && kvkeep_error_reason()[0] == '\0');
  CHECK(kvkeep_keys_count(keys) == 0);
  kvkeep_keys_free(keys);
}

static void misuse_the_rest(kvkeep_cache* cache, kvkeep_key key) {
  kvkeep_block* block;
  kvkeep_block* blocks[2];
  kvkeep_layer layer;
  size_t count;
  REFUSED(kvkeep_load(cache, key, NULL), KVKEEP_INVALID_ARGUMENT, "block: NULL");
  REFUSED(kvkeep_load(NULL, key, &block), KVKEEP_INVALID_ARGUMENT, "cache: NULL");
  REFUSED(kvkeep_load_prefix(cache, NULL, 2, blocks, &count), KVKEEP_INVALID_ARGUMENT,
          "keys: NULL");
  REFUSED(kvkeep_load_prefix(cache, &key, 1, NULL, &count), KVKEEP_INVALID_ARGUMENT,
          "blocks: NULL");
  REFUSED(kvkeep_has(cache, key, NULL), KVKEEP_INVALID_ARGUMENT, "present: NULL");
  REFUSED(kvkeep_why(cache, key, NULL), KVKEEP_INVALID_ARGUMENT, "text: NULL");
  REFUSED(kvkeep_flush(NULL, 0, NULL, NULL), KVKEEP_INVALID_ARGUMENT, "cache: NULL");
  REFUSED(kvkeep_stats_read(cache, NULL), KVKEEP_INVALID_ARGUMENT, "stats: NULL");
  REFUSED(kvkeep_block_layer(NULL, 0, &layer), KVKEEP_INVALID_ARGUMENT, "block: NULL");
  kvkeep_keys_free(NULL);
  kvkeep_block_free(NULL);
  kvkeep_stats_free(NULL);
  kvkeep_text_free(NULL);
  kvkeep_cache_free(NULL);
  CHECK(kvkeep_keys_count(NULL) == 0 && kvkeep_block_num_layers(NULL) == 0);
  CHECK(strcmp(kvkeep_status_name(KVKEEP_DATA_LOSS), "data_loss") == 0);
  CHECK(strcmp(kvkeep_status_name((kvkeep_status)77), "unknown") == 0);
  CHECK(strchr(kvkeep_version(), '.') != NULL);
}

int main(int argc, char** argv) {
  kvkeep_cache* cache;
  kvkeep_keys* chained;
  const kvkeep_key* keys;
  kvkeep_options options;
  size_t i;
  CHECK(argc == 2);
  for (i = 0; i < sizeof numbers / sizeof(float); ++i) ((float*)numbers)[i] = (float)i;
  misuse_open(argv[1]);
  check_published_keys();
  check_published_extras();
  misuse_keys();
  chained = chain(3 * kTokens + 5);
  keys = kvkeep_keys_data(chained);
  CHECK(kvkeep_keys_count(chained) == 3 && keys[2].size == 32);

  options = options_for(argv[1]);
  OK(kvkeep_open(&options, &cache));
  misuse_save(cache, keys[0]);
  misuse_the_rest(cache, keys[0]);
  save_three(cache, keys);
  use(cache, keys);
  read_stats(cache);
  kvkeep_cache_free(cache); /* Closes it. */

  OK(kvkeep_open(&options, &cache));
  use_reopened(cache, keys);
  kvkeep_keys_free(chained);
  return 0;
}
