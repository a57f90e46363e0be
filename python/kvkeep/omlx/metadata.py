"""PagedSSDBlockMetadata: one block as an index knows it."""

from __future__ import annotations

import time
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .._values import BlockMeta

__all__ = ["PagedSSDBlockMetadata"]


@dataclass
class PagedSSDBlockMetadata:
    """Sizes in bytes, times in seconds since the Unix epoch, block_size in tokens (0: not declared)."""

    block_hash: bytes
    file_path: Path
    file_size: int
    token_count: int
    created_at: float
    last_access: float
    num_layers: int
    model_name: str = ""
    block_size: int = 0
    cache_signature: str = ""
    layer_cache_types: Optional[List[str]] = None
    layer_meta_states: Optional[List[Tuple[Any, ...]]] = None

    def touch(self) -> None:
        """last_access becomes the present time."""
        self.last_access = time.time()

    def to_dict(self) -> Dict[str, Any]:
        """As JSON can hold it: the hash in hex, the path as text; types and meta states only if there are any."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["block_hash"] = self.block_hash.hex()
        values["file_path"] = str(self.file_path)
        for name in ("layer_cache_types", "layer_meta_states"):
            if not values[name]:
                del values[name]
        if self.layer_meta_states:
            values["layer_meta_states"] = [list(state) for state in self.layer_meta_states]
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PagedSSDBlockMetadata":
        """The inverse of to_dict(). Unknown members are ignored.

        ValueError, naming the member: a required one is missing, or one has a wrong type.
        """
        values = {}
        for field in fields(cls):
            if field.name in data:
                values[field.name] = _READERS[field.name](field.name, data[field.name])
            elif field.default is MISSING:
                raise ValueError(f"{field.name}: missing")
        return cls(**values)


def _expect(name: str, value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{name}: expected {kinds[0].__name__}, got {type(value).__name__}")
    return value


def _read_hash(name: str, value: Any) -> bytes:
    try:
        return bytes.fromhex(_expect(name, value, str))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read_list(name: str, value: Any, *kinds: type) -> Optional[List[Any]]:
    if value is None:
        return None
    return [_expect(name, item, *kinds) for item in _expect(name, value, list, tuple)]


def _read_text(name: str, value: Any) -> str:
    return str(_expect(name, value, str))


def _read_integer(name: str, value: Any) -> int:
    return int(_expect(name, value, int))


def _read_time(name: str, value: Any) -> float:
    return float(_expect(name, value, float, int))


_READERS: Dict[str, Callable[[str, Any], Any]] = {
    "block_hash": _read_hash,
    "file_path": lambda name, value: Path(_read_text(name, value)),
    "file_size": _read_integer,
    "token_count": _read_integer,
    "created_at": _read_time,
    "last_access": _read_time,
    "num_layers": _read_integer,
    "model_name": _read_text,
    "block_size": _read_integer,
    "cache_signature": _read_text,
    "layer_cache_types": lambda name, value: _read_list(name, value, str),
    "layer_meta_states": lambda name, value: as_tuples(
        _read_list(name, value, list, tuple, type(None))
    ),
}


def as_tuples(states: Any) -> Optional[List[Tuple[Any, ...]]]:
    """Meta states as callers know them: one tuple per layer, empty where a layer has none."""
    return [tuple(state or ()) for state in states] if states else None


def from_block_meta(meta: BlockMeta) -> PagedSSDBlockMetadata:
    return PagedSSDBlockMetadata(
        block_hash=meta.key,
        file_path=meta.path,
        file_size=meta.file_size,
        token_count=meta.token_count,
        created_at=meta.created_at,
        last_access=meta.last_access,
        num_layers=meta.num_layers,
        model_name=meta.model_name,
        block_size=meta.block_size,
        cache_signature=meta.signature,
        layer_cache_types=meta.layer_types,
        layer_meta_states=as_tuples(meta.meta_states),
    )
