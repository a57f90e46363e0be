"""kvkeep keeps the KV-cache blocks of a language model in RAM and on disk and gives them back: the right
bytes, or a miss.

    import kvkeep

    tokens = list(range(512))
    with kvkeep.BlockCache("blocks", max_size="50GB", model_name="m", block_size=256) as cache:
        keys = kvkeep.chain_keys(tokens, block_size=256, model_name="m")
        cache.save(keys[0], layers, token_count=256)  # layers: [(k, v), ...], one pair per layer
        block = cache.load(keys[0])                   # None for a miss
        blocks = cache.load_many(keys)                # up to the first miss

Importing it needs no other package. numpy reads BF16 and F8 tensors with the help of ml_dtypes.
"""

from ._cache import BlockCache
from ._errors import (
    Closed,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)
from ._kvkeep import (
    HotBudget,
    JoinedTensor,
    LoadedPrefix,
    PrefixCache,
    PrefixMatch,
    Tensor,
    __version__,
    chain_keys,
    format_bytes,
    parse_size,
)
from ._values import (
    Block,
    BlockMeta,
    CacheList,
    CloseReport,
    EvictionReport,
    ExpectedLayout,
    FlushReport,
    NState,
    SaveResult,
    StoreReport,
    TurboQuant,
)

__all__ = [
    "Block",
    "BlockCache",
    "BlockMeta",
    "CacheList",
    "CloseReport",
    "Closed",
    "DataLoss",
    "DeadlineExceeded",
    "Error",
    "EvictionReport",
    "ExpectedLayout",
    "FailedPrecondition",
    "FlushReport",
    "HotBudget",
    "Internal",
    "InvalidArgument",
    "JoinedTensor",
    "LoadedPrefix",
    "NState",
    "NotFound",
    "PrefixCache",
    "PrefixMatch",
    "ResourceExhausted",
    "SaveResult",
    "StoreReport",
    "Tensor",
    "TurboQuant",
    "Unavailable",
    "Unimplemented",
    "__version__",
    "chain_keys",
    "format_bytes",
    "parse_size",
]
