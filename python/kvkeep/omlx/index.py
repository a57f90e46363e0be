"""PagedSSDCacheIndex: block metadata in the order of last use. The manager does not use it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import islice
from typing import List, Optional

from .metadata import PagedSSDBlockMetadata

__all__ = ["PagedSSDCacheIndex"]


class PagedSSDCacheIndex:
    """Keeps metadata in memory, least recently used first. Touches no file and never evicts by itself.

    max_size_bytes: what .max_size says; nothing is enforced. Safe from any thread.
    """

    def __init__(self, max_size_bytes: int) -> None:
        self._max_size = max_size_bytes
        self._lock = threading.Lock()
        self._entries: "OrderedDict[bytes, PagedSSDBlockMetadata]" = OrderedDict()
        self._total_size = 0

    def add(self, metadata: PagedSSDBlockMetadata) -> None:
        """As the most recent, in place of an entry of the same hash."""
        with self._lock:
            self._remove(metadata.block_hash)
            self._entries[metadata.block_hash] = metadata
            self._total_size += metadata.file_size

    def get(self, block_hash: bytes) -> Optional[PagedSSDBlockMetadata]:
        """The entry itself, or None. No effect on the order."""
        with self._lock:
            return self._entries.get(block_hash)

    def remove(self, block_hash: bytes) -> Optional[PagedSSDBlockMetadata]:
        """The entry that was removed, or None."""
        with self._lock:
            return self._remove(block_hash)

    def touch(self, block_hash: bytes) -> None:
        """Makes an entry the most recent and its last_access the present time, if it is there."""
        with self._lock:
            entry = self._entries.get(block_hash)
            if entry is not None:
                entry.touch()
                self._entries.move_to_end(block_hash)

    def contains(self, block_hash: bytes) -> bool:
        with self._lock:
            return block_hash in self._entries

    def get_lru_entries(self, count: int) -> List[PagedSSDBlockMetadata]:
        """At most `count`, oldest first."""
        with self._lock:
            return list(islice(self._entries.values(), max(0, count)))

    def evict_until_size(
        self, target_size: int, max_count: Optional[int] = None
    ) -> List[PagedSSDBlockMetadata]:
        """Removes the oldest until .total_size is at most `target_size`; at most `max_count` of them.

        Returns what was removed, oldest first. The files are the caller's.
        """
        removed: List[PagedSSDBlockMetadata] = []
        with self._lock:
            while self._entries and self._total_size > target_size:
                if max_count is not None and len(removed) >= max_count:
                    break
                _, entry = self._entries.popitem(last=False)
                self._total_size -= entry.file_size
                removed.append(entry)
        return removed

    def update_file_size(self, block_hash: bytes, actual_size: int) -> None:
        """Bytes. No effect where the hash is not listed."""
        with self._lock:
            entry = self._entries.get(block_hash)
            if entry is not None:
                self._total_size += actual_size - entry.file_size
                entry.file_size = actual_size

    def sort_lru_by_last_access(self) -> None:
        """The order becomes that of last_access; entries of one time keep theirs."""
        with self._lock:
            entries = sorted(self._entries.items(), key=lambda item: item[1].last_access)
            self._entries = OrderedDict(entries)

    def get_all_hashes(self) -> List[bytes]:
        """Oldest first."""
        with self._lock:
            return list(self._entries)

    def get_all_metadata(self) -> List[PagedSSDBlockMetadata]:
        """Oldest first."""
        with self._lock:
            return list(self._entries.values())

    @property
    def total_size(self) -> int:
        """Bytes of all entries."""
        with self._lock:
            return self._total_size

    @property
    def max_size(self) -> int:
        """Bytes, as given."""
        return self._max_size

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._entries)

    def _remove(self, block_hash: bytes) -> Optional[PagedSSDBlockMetadata]:
        entry = self._entries.pop(block_hash, None)
        if entry is not None:
            self._total_size -= entry.file_size
        return entry
