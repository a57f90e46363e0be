"""oMLX's SSD cache on top of kvkeep: the names of `omlx.cache.paged_ssd_cache`, argument for argument.

    from kvkeep.omlx import PagedSSDCacheManager   # was: from omlx.cache.paged_ssd_cache import ...

Cache directories are the same ones, in both directions. MLX is imported when the first block is
loaded; nothing else beside kvkeep is needed. docs/omlx.md lists what a caller can see of the difference.
"""

from .._kvkeep import parse_size
from .budget import SharedHotCacheBudget
from .index import PagedSSDCacheIndex
from .interface import CacheManager
from .manager import PagedSSDCacheManager
from .metadata import PagedSSDBlockMetadata
from .stats import PagedSSDCacheStats, PagedSSDModelStats

__all__ = [
    "CacheManager",
    "PagedSSDBlockMetadata",
    "PagedSSDCacheIndex",
    "PagedSSDCacheManager",
    "PagedSSDCacheStats",
    "PagedSSDModelStats",
    "SharedHotCacheBudget",
    "parse_size",
]
