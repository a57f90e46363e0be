"""PagedSSDCacheManager: oMLX's class, served by a kvkeep.BlockCache."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .. import _errors
from .._cache import BlockCache
from . import metadata, stats
from .budget import SharedHotCacheBudget
from .cache_data import to_layers
from .generic import GenericCalls
from .loaded import arrays_of, facts_of
from .meta_states import to_meta_states
from .metadata import PagedSSDBlockMetadata
from .stats import PagedSSDCacheStats, PagedSSDModelStats

__all__ = ["PagedSSDCacheManager"]

logger = logging.getLogger(__name__)

CacheData = List[Any]


class PagedSSDCacheManager(GenericCalls):
    """Keeps KV-cache blocks in RAM and on an SSD under their hash: the right bytes, or a miss.

    Drop-in for the class of this name in `omlx.cache.paged_ssd_cache`. Hashes are bytes (1 to 119),
    sizes are bytes, arrays are MLX's; kvkeep.omlx.cache_data says how a layer looks. Calls may come from
    any thread and release the GIL. Apart from the constructor none raises for what the disk or a block is
    like: loads are misses, saves are False, with the reason in the log and in get_stats_dict().

    cache_dir: created if missing; taken for this process. None is allowed with hot_cache_only.
    max_size_bytes: what the directory may occupy, everything in it included.
    hot_cache_max_bytes: RAM for blocks; 0: none. hot_cache_budget: shared with other managers, instead.
    hot_cache_only: no disk at all.
    expected_model_name, expected_num_layers, expected_block_size (tokens), expected_layer_cache_types:
        what blocks must be for to be served and saved; "", 0, 0, None: not checked.
    expected_block_size_tokens, expected_kv_bytes_per_token: size the queue of blocks to be written.

    kvkeep.Error: the directory cannot be opened, or is in use; ValueError, TypeError: an argument.
    """

    def __init__(
        self,
        cache_dir: Union[str, Path, None],
        max_size_bytes: int,
        hot_cache_max_bytes: int = 0,
        hot_cache_only: bool = False,
        hot_cache_budget: Optional[SharedHotCacheBudget] = None,
        expected_model_name: str = "",
        expected_num_layers: int = 0,
        expected_block_size: int = 0,
        expected_block_size_tokens: int = 256,
        expected_kv_bytes_per_token: int = 200_000,
        expected_layer_cache_types: Optional[Sequence[str]] = None,
    ) -> None:
        if hot_cache_budget is not None and not isinstance(hot_cache_budget, SharedHotCacheBudget):
            raise TypeError("hot_cache_budget: expected a kvkeep.omlx.SharedHotCacheBudget")
        if cache_dir is None and not hot_cache_only:
            raise _errors.InvalidArgument("cache_dir: missing; give one, or ask for hot_cache_only")
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._budget = hot_cache_budget
        self._refused = 0  # States that were refused before they reached the cache.
        self._lock = threading.Lock()
        self._cache = BlockCache(
            self._cache_dir,
            max_size=max_size_bytes,
            hot_only=hot_cache_only,
            model_name=expected_model_name or "",
            num_layers=expected_num_layers,
            block_size=expected_block_size,
            block_size_tokens=expected_block_size_tokens,
            kv_bytes_per_token=expected_kv_bytes_per_token,
            layer_types=expected_layer_cache_types or None,
            **_hot_tier(hot_cache_max_bytes, hot_cache_budget),
        )
        if hot_cache_budget is not None:
            hot_cache_budget.join(self)

    # Saving and loading

    def save_block(
        self,
        block_hash: bytes,
        cache_data: Iterable[Any],
        token_count: int,
        model_name: str = "",
        layer_cache_types: Optional[Sequence[str]] = None,
        layer_meta_states: Optional[Sequence[Any]] = None,
        hot_cache_write_back: bool = True,
    ) -> bool:
        """Copies a block into the cache; True if it is loadable now, also if it was there before.

        cache_data: one state per layer. token_count: tokens of the block. model_name: "": the expected one.
        layer_cache_types, layer_meta_states: one entry per layer, or None.
        hot_cache_write_back: False sends the block to disk at once and does not keep it in RAM.

        Evaluates lazy arrays. May wait a second for a full queue of blocks to be written, then writes the
        block itself.
        """
        try:
            saved = self._cache.save(
                block_hash,
                to_layers(cache_data),
                token_count=token_count,
                model_name=model_name or "",
                layer_types=layer_cache_types or None,
                meta_states=to_meta_states(layer_meta_states),
                write_back=bool(hot_cache_write_back),
            )
        except Exception as error:  # Whatever the evaluation of an array may raise.
            logger.warning("a block was not saved: %s", error, exc_info=error.__cause__)
            self._count_refusal(error)
            return False
        if not saved:
            logger.warning("a block was not saved: %s: %s", saved.reason, saved.message)
        return bool(saved)

    def load_block(self, block_hash: bytes) -> Optional[CacheData]:
        """The states of all layers, or None for a miss. Reads the disk unless the block is in RAM."""
        return self.load_block_with_metadata(block_hash)[0]

    def load_block_with_metadata(
        self, block_hash: bytes, promote_to_hot_cache: bool = True
    ) -> Tuple[Optional[CacheData], Optional[Dict[str, Any]]]:
        """(states, metadata), or (None, None) for a miss.

        The metadata has num_layers, token_count, model_name, block_size, cache_signature,
        layer_cache_types, layer_meta_states. promote_to_hot_cache: keep a block that was read from disk in
        RAM, where there is room.
        """
        try:
            block = self._cache.load(block_hash, promote=bool(promote_to_hot_cache))
        except _errors.Closed:
            return None, None
        if block is None:
            return None, None
        try:
            return arrays_of(block), facts_of(block)
        except (TypeError, ValueError, RuntimeError) as error:  # F8, or MLX is out of memory.
            logger.warning("block %s cannot become arrays of MLX: %s", block_hash.hex()[:16], error)
            return None, None

    def preload_matched_blocks(self, block_hashes: Sequence[bytes]) -> int:
        """Brings blocks that are only on disk into RAM, those first in the list first; how many.

        As far as there is room, and only if at least four would have to be read. Returns when all are read.
        """
        return self._cache.preload(block_hashes)

    # Questions

    def has_block(self, block_hash: bytes) -> bool:
        """True if a load would have found the block a moment ago. Memory only; touches nothing."""
        return block_hash in self._cache

    def get_block_metadata(self, block_hash: bytes) -> Optional[PagedSSDBlockMetadata]:
        """None if the block is not served, or only in RAM so far. May read the file's header."""
        meta = self._cache.block_meta(block_hash)
        return None if meta is None else metadata.from_block_meta(meta)

    def get_stats(self) -> PagedSSDCacheStats:
        return stats.from_counters(PagedSSDCacheStats, self._counters())

    def get_stats_for_model(self, model_name: str) -> PagedSSDModelStats:
        """Sizes of the model of this name, or of the only one with this last path component."""
        of_model = self._cache.stats_for_model(model_name or "")
        return stats.from_counters(PagedSSDModelStats, {**self._counters(), **of_model})

    def get_stats_dict(self) -> Dict[str, Any]:
        """All counters by name, sizes also as text, and the directory."""
        return stats.as_dict(self._counters(), self._cache_dir)

    @property
    def size(self) -> int:
        """Blocks that can be loaded."""
        return len(self._cache)

    @property
    def max_size(self) -> int:
        """Bytes; the limit in force, which is lower than the configured one where the disk is nearly full."""
        return int(self._cache.stats()["max_size_bytes"])

    @property
    def configured_max_size(self) -> int:
        """Bytes, as given."""
        return int(self._cache.stats()["configured_max_size_bytes"])

    def __repr__(self) -> str:
        return "PagedSSDCacheManager" + repr(self._cache)[len("kvkeep.BlockCache") :]

    # What blocks must be

    def adopt_layer_signature_if_unset(self, layer_cache_types: Optional[Sequence[str]]) -> bool:
        """These layer types are expected from now on, if none were; True if that is so."""
        return self._cache.adopt_layer_types(layer_cache_types or ())

    def set_expected_layer_signature(
        self,
        layer_cache_types: Optional[Sequence[str]],
        *,
        turboquant_kv_bits: Optional[float] = None,
    ) -> bool:
        """These layer types, and this depth in bits per value, are expected from now on.

        True if that changes which blocks fit. No types change nothing.
        """
        if not layer_cache_types:
            return False
        return self._cache.set_expected_layer_types(layer_cache_types, turboquant_kv_bits)

    def invalidate_stale_layer_signature(self) -> int:
        """Stops serving blocks of the expected model that do not fit; how many. Their files stay."""
        return self._cache.sweep_stale_layouts()

    # Letting go

    def forget_block(self, block_hash: bytes) -> bool:
        """Stops serving a block whose file may be of use to others; True if it was served."""
        return self._cache.forget(block_hash)

    def delete_block(self, block_hash: bytes) -> bool:
        """Removes the block everywhere; True if something was removed."""
        try:
            return self._cache.delete(block_hash)
        except (_errors.FailedPrecondition, _errors.Unavailable) as error:
            logger.warning("block %s was not deleted: %s", block_hash.hex()[:16], error)
            return False

    def enforce_size_limit(self) -> int:
        """Where the limit is exceeded: removes the oldest until 90 % of it are used; bytes freed."""
        return self._cache.enforce_size_limit()

    def clear_hot_cache(self) -> int:
        """Lets the blocks in RAM go; how many have left.

        Those that are not on disk yet go to the queue of blocks to be written; one that finds it full stays.
        """
        return self._cache.clear_hot(spill=True)

    def shrink_hot_cache_to(
        self, target_bytes: int, protected_hashes: Optional[Iterable[bytes]] = None
    ) -> int:
        """Lets the oldest blocks of this manager go until it holds `target_bytes` of RAM; bytes freed.

        Blocks in `protected_hashes` stay. May wait for a full write queue.
        """
        return self._cache.shrink_hot_to(max(0, int(target_bytes)), list(protected_hashes or ()))

    def clear(self) -> int:
        """Removes every block, those of other models in this directory included; how many."""
        before = self._files()
        try:
            return self._cache.clear()
        except (_errors.FailedPrecondition, _errors.Unavailable) as error:
            logger.warning("not everything was removed: %s", error)
            return max(0, before - self._files())

    def close(self) -> None:
        """Writes what is not on disk yet, within 60 s (120 s with a hot tier), and gives the directory back.

        Later calls do nothing; later loads are misses and later saves are False.
        """
        if self._budget is not None:
            self._budget.leave(self)
        try:
            failed = self._cache.close().failed
        except _errors.DeadlineExceeded as error:
            logger.warning("closing: %s", error)
            return
        if failed:
            logger.warning("closing: %d blocks could not be written", len(failed))

    # What oMLX's own callers reach for

    def _get_file_path(self, block_hash: bytes) -> Path:
        return self._cache.block_path(block_hash)

    def _tracked_ssd_size(self) -> int:
        return int(self._cache.stats()["total_size_bytes"])

    @property
    def _expected_layer_cache_types(self) -> Optional[List[str]]:
        return self._cache.expected_layout().layer_types

    def _count_refusal(self, error: Exception) -> None:
        if isinstance(error, _errors.Error):  # Of the cache, which counts by itself.
            return
        with self._lock:
            self._refused += 1

    def _files(self) -> int:
        return int(self._cache.stats()["num_files"])

    def _counters(self) -> Dict[str, Any]:
        counters = self._cache.stats()
        with self._lock:
            counters["errors"] += self._refused
        return counters


def _hot_tier(size: int, budget: Optional[SharedHotCacheBudget]) -> Dict[str, Any]:
    return {"hot_size": size} if budget is None else {"budget": budget.shared}
