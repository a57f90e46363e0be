// The docstrings of kvkeep.PrefixCache and of what its calls give.
#pragma once

namespace kvkeep::python {

inline constexpr const char* kPrefixCacheDoc =
    "Finds, loads and stores the state of prompts by their tokens, in a BlockCache.\n\n"
    "    prefixes = kvkeep.PrefixCache(cache, block_size=256, fields={\"model\": \"m\"})\n"
    "    with prefixes.match(tokens) as match:   # memory only\n"
    "        prefix = prefixes.load(match)       # prefix.tokens of them need not be computed\n"
    "    prefixes.store(tokens, layers, layer_types=[\"KVCache\", ...])\n\n"
    "A prompt is cut into blocks of block_size tokens. The key of each depends on all tokens up "
    "to\n"
    "its end and on `fields`, so that blocks of another model, adapter or tenant are never "
    "found.\n\n"
    "cache: an open BlockCache.\n"
    "block_size: tokens of a block. Another one finds nothing that was stored with this one.\n"
    "fields: what changes the state for equal tokens, as a dict of str: model, revision, adapter,\n"
    "    kv_dtype, ...\n"
    "recipe: how keys are made: 'kvkeep-1', or 'omlx-1' for directories of oMLX, whose fields are\n"
    "    'model' only.\n"
    "partial_tails: what becomes of the tokens after the last full block: 'none': they are "
    "computed\n"
    "    again; 'hot': kept in the hot tier, if there is one; 'all': written as well.\n"
    "max_blocks: how many blocks matches may hold at the same time.\n"
    "lease: seconds that a match keeps its blocks if it is neither released nor collected.\n\n"
    "ValueError (kvkeep.InvalidArgument) names an argument that cannot be. All methods may be\n"
    "called from any thread.";

inline constexpr const char* kMatchDoc =
    "What of a prompt is cached. Its blocks stay until it is released, ends a `with` block, is\n"
    "collected, or its lease has expired.\n\n"
    "tokens: how many need not be computed; always fewer than the prompt has.\n"
    "blocks: a list of (key, tokens, source).\n"
    "reason: why the block after them is not there, by the names of stats()[\"miss_reason\"]; "
    "None\n"
    "    if no full block is missing.\n"
    "text: the same for a person.";

inline constexpr const char* kReleaseDoc = "Lets the blocks go. Idempotent.";

inline constexpr const char* kJoinedDoc =
    "One tensor of a layer over all blocks of a prefix.\n\n"
    "path: where it stands in the layer's state: indices of elements; in a cache list the member\n"
    "    first, in a TurboQuant state 0 (key) or 1 (value) and the field.\n"
    "dtype: as in safetensors, such as \"BF16\". shape: of the whole. nbytes: bytes of the whole.";

inline constexpr const char* kCopyIntoDoc =
    "Copies the tensor, row-major, into a writable buffer of nbytes bytes.\n\n"
    "The one copy between the cache's memory and the caller's. Releases the GIL.\n"
    "ValueError (kvkeep.InvalidArgument) if the buffer has another size.";

inline constexpr const char* kLoadedDoc =
    "The blocks of a prefix.\n\n"
    "tokens: covered; the last block may hold more than that.\n"
    "blocks: a list of kvkeep.Block, from the first token on. The state of a layer that cannot be\n"
    "    cut along its tokens is in the last one.\n"
    "reason: why they are fewer than were matched, or None.";

inline constexpr const char* kJoinDoc =
    "The tensors of a layer that can be cut along its tokens, over all blocks, cut to `tokens`: a\n"
    "list of kvkeep.JoinedTensor. Copies nothing yet.\n\n"
    "kvkeep.FailedPrecondition if the blocks hold no tokens of that layer one after the other.";

inline constexpr const char* kPrefixMatchDoc =
    "The longest cached prefix of a prompt, without gaps: a PrefixMatch. Reads no block.\n\n"
    "tokens: ids from 0 to 4294967295, as a sequence of int or an integer array of one dimension.\n"
    "salt: of the tenant; prompts of different salts share no block.\n"
    "extras: a sequence of (start, extras), ascending: blocks that end after token `start` depend\n"
    "    on these bytes, str and int, such as the digest of an image.\n\n"
    "At least one token is left to be computed. ValueError (kvkeep.InvalidArgument) names the\n"
    "argument. Safe from any thread; releases the GIL.";

inline constexpr const char* kPrefixLoadDoc =
    "The blocks of a match, as far as they are whole and fit together: a LoadedPrefix.\n\n"
    "Reads what is on disk. Where layers cannot be cut along their tokens, the prefix ends with "
    "the\n"
    "last block that holds the state of all of them. Never raises for a missing or damaged block.\n"
    "Safe from any thread; releases the GIL.";

inline constexpr const char* kPrefixStoreDoc =
    "Stores the blocks of a prompt that are not there yet, in order, up to the first that is\n"
    "refused: a StoreReport.\n\n"
    "tokens, salt, extras: as for match().\n"
    "layers: one state per layer after all tokens, as for BlockCache.save(). Layers that can be "
    "cut\n"
    "    hold the tokens from first_token on, on axis 2 of [batch, heads, tokens, width]; arrays "
    "of\n"
    "    any strides are taken as they are.\n"
    "layer_types: class name of each layer's cache; it decides what can be cut.\n"
    "meta_states: a list of plain values per layer, or None.\n"
    "snapshots: a sequence of (tokens, layers, meta_states): the state of the layers that cannot "
    "be\n"
    "    cut as it was after so many tokens, a multiple of the block size.\n\n"
    "The arrays are copied before it returns. ValueError (kvkeep.InvalidArgument) for counts that\n"
    "disagree. Safe from any thread; releases the GIL while it copies.";

inline constexpr const char* kPrefixPreloadDoc =
    "Brings the blocks of a match into the hot tier. How many it brought. Reads the disk; safe "
    "from\n"
    "any thread; releases the GIL.";

inline constexpr const char* kPrefixWhyDoc =
    "What a match would find and why it would end there, as a sentence. Counts nothing.";

inline constexpr const char* kPrefixStatsDoc =
    "Counters since it was made, and the state of its pool, as a dict.";

}  // namespace kvkeep::python
