// Docstrings of kvkeep.BlockCache's methods.
#pragma once

namespace kvkeep::python {

inline constexpr const char* kSaveDoc =
    "Copies a block into the cache; loadable at once.\n\n"
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
    "model_name: the model it belongs to; empty: the one of the cache.\n"
    "layer_types: class name of each layer's cache.\n"
    "meta_states: per layer a list of None, bool, int, float, str and lists.\n"
    "parent: key of the block before this one.\n"
    "write_back: False sends this block to disk at once, where the cache would keep it in RAM "
    "first.\n\n"
    "Returns a SaveResult: 'stored', 'queued', 'written', 'present', or 'refused' with a reason "
    "(then it is "
    "false).\n"
    "TypeError and kvkeep.InvalidArgument (a ValueError) for mistakes in the arguments; "
    "kvkeep.Closed.\n"
    "Safe from any thread; releases the GIL. Memory only, except that it may wait queue_wait "
    "seconds\n"
    "for a full queue, then write the block itself ('written'), and remove a bounded number of "
    "files\n"
    "to make room.";

inline constexpr const char* kLoadDoc =
    "The block of a key, or None if it is missing or damaged (why() and stats() say why).\n\n"
    "promote: False does not keep a block that was read from disk in the hot tier.\n"
    "Reads the disk unless the block is hot or still waiting to be written. Safe from any thread;\n"
    "releases the GIL. kvkeep.Closed after close().";

inline constexpr const char* kLoadManyDoc =
    "The blocks of the keys up to the first miss, with one submission to the disk.\n\n"
    "For the keys of a prompt: blocks after a missing one are of no use, and are neither read nor\n"
    "counted. Otherwise as load().";

inline constexpr const char* kLoadEachDoc =
    "One entry per key, None for a miss, with one submission to the disk. Otherwise as load().";

inline constexpr const char* kPreloadDoc =
    "Brings blocks that are only on disk into the hot tier, those first in `keys` first.\n\n"
    "Returns how many it brought: as many as the hot tier has room for, and none if fewer than\n"
    "preload_min_blocks would have to be read. Counts as neither loads nor lookups. Reads the "
    "disk\n"
    "and returns when all are read. Safe from any thread; releases the GIL.";

inline constexpr const char* kWhyDoc =
    "Where a load would find the block, or why it would not, as a line for a person.\n\n"
    "'hot', 'pending' or 'disk' for a hit; for a miss its reason and a sentence, such as\n"
    "'evicted: block 0a1b2c3d4e5f6071: gave room to another block'. The word before the first "
    "colon\n"
    "is the name that stats()['miss_reason'] counts. From what is known in memory: a file that "
    "was\n"
    "damaged or removed meanwhile still counts as 'disk'. Touches nothing. Safe from any thread.";

inline constexpr const char* kBlockMetaDoc =
    "What the index and the file's header say about a block, as a BlockMeta; None if it is not "
    "served,\n"
    "or only in the hot tier. May read the disk; touches nothing. Safe from any thread; releases "
    "the GIL.";

inline constexpr const char* kBlockPathDoc =
    "Where the block's file is, or would be, as a pathlib.Path. Memory only.";

inline constexpr const char* kExpectedLayoutDoc =
    "What blocks must be for to be served now, as an ExpectedLayout. Memory only.";

inline constexpr const char* kStatsDoc =
    "A snapshot of all counters as a dict.\n\n"
    "miss_reason and save_refused are dicts by reason, load_times by source: count, total_ns, and "
    "a\n"
    "histogram: buckets[i] loads took at most bounds_us[i] microseconds, the last took longer.";

inline constexpr const char* kStatsForModelDoc =
    "What the cache holds of one model, as a dict; the limits are those of the cache.\n\n"
    "model_name: a stored name, but for slashes at its end, or its last path component if only one "
    "model\n"
    "has that. In the dict, model_name is the name as stored, '' if nothing matches. Looks at "
    "every block;\n"
    "memory only.";

inline constexpr const char* kDeleteDoc =
    "Removes the block everywhere. True if something was removed.\n\n"
    "kvkeep.FailedPrecondition if a match holds it and this is not forced. kvkeep.Unavailable (an\n"
    "OSError) if its file could not be unlinked. Safe from any thread; releases the GIL.";

inline constexpr const char* kForgetDoc =
    "Stops serving a block that turned out to be unusable. True if it was served.\n\n"
    "Its file stays, counted, until it is evicted or a save replaces it; loads say 'forgotten'. "
    "Safe\n"
    "from any thread; releases the GIL. False after close().";

inline constexpr const char* kReportBadDoc =
    "The block loaded, but proved to be unusable: removes it everywhere and keeps its file "
    "aside.\n\n"
    "True if something was removed. Safe from any thread; releases the GIL. kvkeep.Closed.";

inline constexpr const char* kClearDoc =
    "Removes every block from every tier, those not served and those not on disk yet included.\n\n"
    "Returns how many. kvkeep.Unavailable (an OSError) if files could not be unlinked. Blocks "
    "saved\n"
    "meanwhile may stay. Safe from any thread; releases the GIL.";

inline constexpr const char* kEnforceDoc =
    "Where the limit is exceeded: removes least recently used blocks until 90 % of it are used.\n\n"
    "Returns the bytes freed. Removes files; safe from any thread; releases the GIL.";

inline constexpr const char* kMakeRoomDoc =
    "Removes least recently used blocks until `incoming` bytes more would fit. Saves do it by "
    "themselves.\n\n"
    "incoming: an int, or text such as '1GB'. max_unlinks: files to remove at most; None: 32.\n"
    "unbounded: as many as it takes. Returns an EvictionReport. Safe from any thread; releases the "
    "GIL.";

inline constexpr const char* kSetMaxSizeDoc =
    "Another max_size, in force from the next save on: an int, or text such as '50GB'.\n\n"
    "No effect with hot_only.";

inline constexpr const char* kSetHotSizeDoc =
    "Another hot_size, in force from the next save or load on: an int, or text such as '1GB'.\n\n"
    "No effect where a budget is shared.";

inline constexpr const char* kAdoptDoc =
    "As set_expected_layer_types(), but only if no layer types are expected yet; True if they are "
    "now.";

inline constexpr const char* kExpectDoc =
    "Layer types that blocks must have from now on, in place of those that the cache was opened "
    "with.\n\n"
    "turboquant_bits: bits per value that TurboQuant states must have; None: any. Files that were "
    "not\n"
    "served and fit now are served again; blocks that do not fit any more are served until\n"
    "sweep_stale_layouts(). True if that changes which blocks fit. An empty list and a depth that "
    "is\n"
    "not finite change nothing. Memory only; safe from any thread.";

inline constexpr const char* kSweepDoc =
    "Stops serving, as forget() does, each block that does not fit what is expected now.\n\n"
    "Returns how many those were. Once per change. Safe from any thread; releases the GIL.";

inline constexpr const char* kClearHotDoc =
    "Lets the blocks of the hot tier go. Returns how many have left.\n\n"
    "spill: hand those that are not on disk yet to the write queue first; one that finds it full\n"
    "stays. With False they are gone. Safe from any thread; releases the GIL.";

inline constexpr const char* kShrinkHotDoc =
    "Lets least recently used blocks of this cache go until its hot tier holds at most `size` "
    "bytes.\n\n"
    "size: an int, or text such as '1GB'. keep: keys of blocks that stay. Blocks that are not on\n"
    "disk yet go to the write queue. Returns the bytes freed. May wait queue_wait seconds for "
    "room\n"
    "in the queue. Safe from any thread; releases the GIL.";

inline constexpr const char* kFlushDoc =
    "Waits until everything accepted before the call is at its final path, blocks of the hot tier "
    "included.\n\n"
    "timeout: seconds; None waits without limit. kvkeep.DeadlineExceeded (a TimeoutError) if it "
    "passes\n"
    "first. Returns a FlushReport. Ctrl-C ends the wait; the blocks are still written. Safe from "
    "any\n"
    "thread; releases the GIL.";

inline constexpr const char* kCloseDoc =
    "Writes what is not on disk yet and gives the directory back. Later calls return the first "
    "report.\n\n"
    "timeout: seconds; None takes close_deadline. kvkeep.DeadlineExceeded (a TimeoutError) if not "
    "all\n"
    "was written in time. Returns a CloseReport. Loaded tensors stay valid. Ctrl-C ends the wait;\n"
    "the closing goes on, and another close() waits for it. Safe from any thread; releases the "
    "GIL.";

}  // namespace kvkeep::python
