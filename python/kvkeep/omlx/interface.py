"""CacheManager: what the manager derives from. oMLX's own class where oMLX is installed, else an equal one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, Tuple

__all__ = ["CacheManager"]


class _CacheManager(ABC):
    """A cache by generic names, as `omlx.cache.interface.CacheManager` has them."""

    @abstractmethod
    def fetch(self, key: Any) -> Tuple[Any, bool]:
        """(value, True), or (None, False)."""

    @abstractmethod
    def store(self, key: Any, value: Any) -> bool:
        """True if the value was accepted."""

    @abstractmethod
    def evict(self, key: Any) -> bool:
        """True if something was removed."""

    @abstractmethod
    def clear(self) -> int:
        """Removes everything; how many entries that were."""

    @abstractmethod
    def get_stats(self) -> Any:
        """A snapshot of the counters."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @property
    @abstractmethod
    def max_size(self) -> int: ...

    @property
    def utilization(self) -> float:
        """size / max_size; 0 where max_size is 0."""
        return self.size / self.max_size if self.max_size > 0 else 0.0


def _interface() -> Any:
    try:
        return import_module("omlx.cache.interface").CacheManager
    except ImportError:
        return _CacheManager


if TYPE_CHECKING:
    CacheManager = _CacheManager
else:
    CacheManager = _interface()
