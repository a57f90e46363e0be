"""A block cache by the names of CacheManager."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, List, Optional, Tuple

from .interface import CacheManager

__all__ = ["GenericCalls"]


class GenericCalls(CacheManager):
    """fetch(), store() and evict() in terms of what a block cache calls these."""

    @abstractmethod
    def load_block(self, block_hash: bytes) -> Optional[List[Any]]: ...

    @abstractmethod
    def save_block(
        self, block_hash: bytes, cache_data: Any, token_count: int, model_name: str = ""
    ) -> bool: ...

    @abstractmethod
    def delete_block(self, block_hash: bytes) -> bool: ...

    def fetch(self, key: Any) -> Tuple[Optional[List[Any]], bool]:
        """(states, True), or (None, False) for a miss or a key that is not bytes."""
        layers = self.load_block(key) if isinstance(key, bytes) else None
        return layers, layers is not None

    def store(self, key: Any, value: Any) -> bool:
        """save_block() of (cache_data, token_count) or (cache_data, token_count, model_name)."""
        if not isinstance(key, bytes):
            return False
        counted = isinstance(value, tuple) and len(value) in (2, 3) and isinstance(value[1], int)
        return self.save_block(key, *value) if counted else self.save_block(key, value, 0)

    def evict(self, key: Any) -> bool:
        """delete_block(); False for a key that is not bytes."""
        return isinstance(key, bytes) and self.delete_block(key)
