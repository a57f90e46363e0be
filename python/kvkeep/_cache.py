"""BlockCache: the store, with its options spelled out."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Type, Union

from . import _kvkeep
from ._errors import Error, InvalidArgument

Size = Union[int, str]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _default_path() -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # Relative paths there are to be ignored, as is an empty one.
        base = os.path.join("~", ".cache")
    return os.path.join(base, "kvkeep", "python")


def _file_system_path(path: Optional[Path]) -> bytes:
    if path is None:
        path = _default_path()
    elif not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path: expected str, bytes or os.PathLike, got {type(path).__name__}")
    return os.path.expanduser(os.fsencode(path))


class BlockCache(_kvkeep.Cache):
    """Keeps KV-cache blocks in RAM and on disk and gives them back by key: the right bytes, or None.

        with kvkeep.BlockCache("blocks", max_size="50GB", model_name="m") as cache:
            keys = kvkeep.chain_keys(tokens, block_size=256, model_name="m")
            cache.save(keys[0], [(k, v), ...], token_count=256)
            block = cache.load(keys[0])

    All methods may be called from any thread, and release the GIL while they work. The cache closes at
    the end of a `with` block, by close(), or when the process ends.

    Opening it creates the directory if it is missing, takes it for this process, and reads the headers of
    its files.

    path: a directory, created if missing; "~" is expanded.
        Default: $XDG_CACHE_HOME/kvkeep/python, or ~/.cache/kvkeep/python.
    max_size: bytes that the directory may occupy on disk, as an int or as text such as "50GB".
        Required, unless hot_only.
    hot_size: bytes of RAM for blocks that were saved or loaded, as an int or as text. "auto":
        1GB or 5 % of the RAM, whichever is less. 0: none.
    budget: a HotBudget that several caches share, in place of hot_size.
    hot_only: no disk at all: blocks that leave RAM are gone. path and max_size are not needed.
    write_back: with a hot tier, new blocks stay in RAM and are written when they are flush_after
        old or leave RAM. False: they go to disk at once and are not kept in RAM.
    flush_after: seconds; what a crash may lose. None: blocks are written only when they leave RAM,
        and by flush() and close().
    model_name, num_layers, block_size (tokens), layer_types: what blocks must be for to be served
        and saved here; empty, 0 or None: not checked.
    identity: whatever else changes the state of the model, as a dict of str; a cache with an
        identity serves only blocks of that identity.
    durability: what must be on stable storage before a block counts as written: "none" (damage is
        detected and is a miss), "data", "data+dir".
    require_digest: refuse files without a digest (those that oMLX wrote).
    ram_max: bytes of RAM for blocks that are loaded or wait to be written. Default: half of it.
    quarantine_max: bytes of damaged files to keep for inspection; 0 deletes them.
    pending_cap: blocks that may wait to be written. Default: what 10 % of the RAM holds of blocks of
        block_size_tokens tokens with kv_bytes_per_token bytes each, within bounds.
    queue_wait: seconds that a save waits for room in a full queue before it writes its block itself.
    io_deadline: a save that found the queue full does that only if the write that the queue waits for
        is younger than these seconds; else it is refused as busy.
    min_free: bytes of the disk that stay free for others, whatever max_size allows. Default: 5 % of the
        disk, at most 5GB.
    eviction: which block leaves first: "leaf_first_lru" (the least recently used, but none before those
        that continue it) or "lru".
    background_reclaim: share of the limit that is kept free, so that saves rarely remove files.
    reconcile_interval: seconds between comparisons of the directory with what is known; 0: never.
    preload_min_blocks: preload() leaves fewer blocks than this to the loads.
    preload_max_workers: blocks that preload() reads at the same time.
    close_deadline: seconds that close() waits for what is not written yet. Default: 60, or 120 with
        a hot tier.

    TypeError, kvkeep.InvalidArgument (a ValueError): an argument, named in the message.
    kvkeep.FailedPrecondition: another process writes here, or the path cannot be used.
    kvkeep.Unavailable (an OSError): the system failed.
    """

    def __init__(
        self,
        path: Optional[Path] = None,
        *,
        max_size: Optional[Size] = None,
        hot_size: Size = "auto",
        budget: Optional[_kvkeep.HotBudget] = None,
        hot_only: bool = False,
        write_back: bool = True,
        flush_after: Optional[float] = 2.0,
        model_name: str = "",
        num_layers: int = 0,
        block_size: int = 0,
        layer_types: Optional[Sequence[str]] = None,
        identity: Optional[Mapping[str, str]] = None,
        durability: str = "none",
        require_digest: bool = False,
        ram_max: Optional[Size] = None,
        quarantine_max: Optional[Size] = None,
        pending_cap: Optional[int] = None,
        block_size_tokens: int = 256,
        kv_bytes_per_token: int = 200_000,
        queue_wait: float = 1.0,
        io_deadline: float = 5.0,
        min_free: Optional[Size] = None,
        eviction: str = "leaf_first_lru",
        background_reclaim: float = 0.05,
        reconcile_interval: float = 60.0,
        preload_min_blocks: int = 4,
        preload_max_workers: int = 8,
        close_deadline: Optional[float] = None,
    ) -> None:
        """Opens the store at `path` and takes it for this process; see the class."""
        options = dict(locals())
        for name in ("self", "path", "__class__"):
            del options[name]
        if max_size is None and not hot_only:
            raise InvalidArgument(
                "max_size: missing; say how much the directory may occupy, such as '50GB', or ask for "
                "hot_only"
            )
        if budget is not None and hot_size != "auto":
            raise InvalidArgument("hot_size: the budget has a size of its own; give only one of them")
        super().__init__(
            None if hot_only and path is None else _file_system_path(path),
            options,
        )
        self._owner = os.getpid()
        _open_caches.add(self)

    def __enter__(self) -> "BlockCache":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


_open_caches: "weakref.WeakSet[Any]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A forked child has none of the threads that write; its parent closes the cache.
    for cache in list(_open_caches):
        if cache._owner != os.getpid():
            continue
        try:
            cache.close()
        except Error as error:  # The next one still has to be closed.
            print(f"kvkeep: {cache!r} was not closed cleanly: {error}", file=sys.stderr)
