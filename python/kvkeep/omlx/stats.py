"""The counters of a manager under the names that oMLX reads."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Dict, Mapping, Type, TypeVar

from .._kvkeep import format_bytes

__all__ = ["PagedSSDCacheStats", "PagedSSDModelStats"]

Stats = TypeVar("Stats", bound="PagedSSDCacheStats")


@dataclass
class PagedSSDCacheStats:
    """A snapshot. Counters are events since the manager was opened, sizes are bytes.

    hits and misses count as in oMLX: hits are loads that returned a block and saves of a block that was
    there. The fields after hot_cache_promotions are kvkeep's own.
    """

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    saves: int = 0
    saves_persisted: int = 0
    loads: int = 0
    errors: int = 0
    ssd_write_drops: int = 0
    ssd_inline_write_fallbacks: int = 0
    evict_unlink_failures: int = 0
    total_size_bytes: int = 0
    max_size_bytes: int = 0
    configured_max_size_bytes: int = 0
    num_files: int = 0
    hot_cache_entries: int = 0
    hot_cache_size_bytes: int = 0
    hot_cache_max_bytes: int = 0
    hot_cache_hits: int = 0
    hot_cache_evictions: int = 0
    hot_cache_promotions: int = 0
    preload_calls: int = 0
    preload_blocks_loaded: int = 0
    preload_time_ms: int = 0
    lookups: int = 0
    load_hits: int = 0
    load_hits_hot: int = 0
    load_hits_pending: int = 0
    load_hits_disk: int = 0
    load_misses: int = 0
    load_transient_errors: int = 0
    unverified_loads: int = 0
    saves_present: int = 0
    save_rejected_incompatible: int = 0
    writes_cancelled: int = 0
    quarantined: int = 0

    @property
    def total_queries(self) -> int:
        return self.hits + self.misses

    @property
    def hit_rate(self) -> float:
        """hits / total_queries; 0 without any."""
        return self.hits / self.total_queries if self.total_queries else 0.0

    @property
    def save_rate(self) -> float:
        """saves / (saves + errors); 0 without any."""
        attempts = self.saves + self.errors
        return self.saves / attempts if attempts else 0.0

    def to_dict(self) -> Dict[str, Any]:
        """Every field, total_queries and hit_rate."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "total_queries": self.total_queries, "hit_rate": self.hit_rate}


@dataclass
class PagedSSDModelStats(PagedSSDCacheStats):
    """Sizes and counts of one model. The counters of events and the limits are those of the whole manager."""

    model_name: str = ""
    """As stored; empty where nothing matches."""
    counters_are_global: bool = True


def from_counters(cls: Type[Stats], counters: Mapping[str, Any]) -> Stats:
    """The fields of `cls` that are in `counters`."""
    names = [field.name for field in fields(cls) if field.name in counters]
    return cls(**{name: counters[name] for name in names})


def as_dict(counters: Mapping[str, Any], cache_dir: object) -> Dict[str, Any]:
    """What get_stats_dict() of oMLX has, and every counter of kvkeep."""
    sizes = {
        "max_size": counters["max_size_bytes"],
        "configured_max_size": counters["configured_max_size_bytes"],
        "total_size": counters["total_size_bytes"],
    }
    formatted = {
        **sizes,
        "hot_cache_size": counters["hot_cache_size_bytes"],
        "hot_cache_max": counters["hot_cache_max_bytes"],
    }
    limit = sizes["max_size"]
    return {
        "cache_dir": str(cache_dir),
        **sizes,
        **{f"{name}_formatted": format_bytes(size) for name, size in formatted.items()},
        "utilization": sizes["total_size"] / limit if limit > 0 else 0.0,
        **counters,
    }
