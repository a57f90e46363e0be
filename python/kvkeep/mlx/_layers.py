"""The caches of mlx-lm's layers, taken apart for kvkeep and put together again.

Each class of mlx-lm that can be kept has a Kind. Its state is what kvkeep.PrefixCache stores; its meta is
a list of what else the object holds, stored beside it as JSON. Keys and values of plain attention are cut
at any token; a sliding window and a recurrent state belong to one number of tokens and are kept whole.

Restoring gets the same structure back as nested lists of arrays.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import mlx.core as mx
from mlx_lm.models import cache as mlx_caches

from .._errors import InvalidArgument
from .._values import CacheList, NState

# The layer type of a CacheList with a member that cannot be cut: kvkeep must not cut it by its ranks.
WHOLE_CACHE_LIST = "WholeCacheList"


class Kind:
    """How one class of mlx-lm is kept."""

    def layer_type(self, cache: Any) -> str:
        return type(cache).__name__

    def positions(self, cache: Any) -> List[Optional[int]]:
        """How many tokens it has computed, and each of its members; None where it does not know."""
        return [cache.offset]

    def state(self, cache: Any, tokens: int) -> Any:
        """The state after so many tokens, as views. InvalidArgument if it cannot be had."""
        raise NotImplementedError

    def meta(self, cache: Any, tokens: int) -> List[Any]:
        return []

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        """ValueError, TypeError if parts or meta are not those of this kind and so many tokens."""
        raise NotImplementedError


class KeysAndValues(Kind):
    """KVCache, ConcatenateKVCache: buffers that may be longer than their tokens."""

    def __init__(self, cls: Any) -> None:
        self._class = cls

    def state(self, cache: Any, tokens: int) -> Any:
        return tuple(_rows(side, tokens, cache.offset) for side in (cache.keys, cache.values))

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        cache = self._class()
        cache.keys, cache.values = parts
        cache.offset = tokens
        return cache


class Quantized(Kind):
    """QuantizedKVCache: keys and values are each (packed, scales, biases)."""

    def state(self, cache: Any, tokens: int) -> Any:
        sides = [tuple(_rows(part, tokens, cache.offset) for part in side)
                 for side in (cache.keys, cache.values)]
        return NState(sides, "QuantizedKVCache")

    def meta(self, cache: Any, tokens: int) -> List[Any]:
        return [cache.group_size, cache.bits]

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        group_size, bits = meta
        cache: Any = mlx_caches.QuantizedKVCache(group_size, bits)
        cache.keys, cache.values = map(tuple, parts)
        cache.offset = tokens
        return cache


class Rotating(Kind):
    """RotatingKVCache: the rows of its window, oldest first, after those that it always keeps.

    mlx-lm itself puts them in this order before it adds several tokens, and cuts them to the window.
    """

    def state(self, cache: Any, tokens: int) -> Any:
        return tuple(self._window(cache, buffer, tokens) for buffer in (cache.keys, cache.values))

    def meta(self, cache: Any, tokens: int) -> List[Any]:
        return [cache.keep, cache.max_size, tokens]

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        keep, max_size, offset = meta
        rows = min(tokens, max_size)
        if offset != tokens or any(part.shape[2] != rows for part in parts):
            raise ValueError(f"a window of {max_size} after {offset} tokens, not after {tokens}")
        cache = mlx_caches.RotatingKVCache(max_size, keep)
        cache.keys, cache.values = parts
        cache.offset, cache._idx = tokens, rows
        return cache

    def _window(self, cache: Any, buffer: mx.array, tokens: int) -> mx.array:
        rows = cache._temporal_order(_single(buffer))
        if tokens < cache.offset and cache.offset <= cache.max_size:
            rows = _rows(rows, tokens, cache.offset)  # Has not lost a row yet.
        elif tokens != cache.offset:
            raise InvalidArgument(f"holds a window after {cache.offset} tokens, not after {tokens}")
        surplus = rows.shape[2] - cache.max_size
        if surplus > 0:
            kept, recent = rows[..., : cache.keep, :], rows[..., cache.keep + surplus :, :]
            rows = mx.concatenate([kept, recent], axis=2) if cache.keep else recent
        if rows.shape[2] != min(tokens, cache.max_size):
            raise InvalidArgument(f"holds {rows.shape[2]} rows after {tokens} tokens")
        return rows


class Chunked(Kind):
    """ChunkedKVCache: the rows of its chunk; those before are gone."""

    def state(self, cache: Any, tokens: int) -> Any:
        if tokens != cache.offset:
            raise InvalidArgument(f"holds a chunk after {cache.offset} tokens, not after {tokens}")
        held = tokens - cache.start_position
        return tuple(_rows(side, held, held) for side in (cache.keys, cache.values))

    def meta(self, cache: Any, tokens: int) -> List[Any]:
        return [cache.chunk_size, cache.start_position, tokens]

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        chunk_size, start, offset = meta
        if offset != tokens or any(part.shape[2] != tokens - start for part in parts):
            raise ValueError(f"a chunk from {start} to {offset} tokens, not to {tokens}")
        cache: Any = mlx_caches.ChunkedKVCache(chunk_size)
        cache.keys, cache.values = parts
        cache.offset, cache.start_position = tokens, start
        return cache


class Arrays(Kind):
    """ArraysCache: a recurrent state. It does not know after how many tokens."""

    def positions(self, cache: Any) -> List[Optional[int]]:
        return [None]

    def state(self, cache: Any, tokens: int) -> Any:
        if cache.batch_size != 1:
            raise InvalidArgument(f"holds a batch of {cache.batch_size}")
        return NState([tuple(cache.cache), cache.left_padding, cache.lengths], "ArraysCache")

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        arrays, left_padding, lengths = parts
        cache = mlx_caches.ArraysCache(len(arrays))
        cache.cache, cache.left_padding, cache.lengths = arrays, left_padding, lengths
        return cache


class Members(Kind):
    """mlx-lm's CacheList: one after another, each of a kind of its own."""

    def layer_type(self, cache: Any) -> str:
        types = [kind_of(member).layer_type(member) for member in cache.caches]
        flat = all(is_cut(name) and name != "CacheList" for name in types)
        return "CacheList" if flat else WHOLE_CACHE_LIST

    def positions(self, cache: Any) -> List[Optional[int]]:
        return [at for member in cache.caches for at in kind_of(member).positions(member)]

    def state(self, cache: Any, tokens: int) -> Any:
        states = [kind_of(member).state(member, tokens) for member in cache.caches]
        if is_cut(self.layer_type(cache)):
            return CacheList(states)
        return NState([_nested(state) for state in states], "CacheList")

    def meta(self, cache: Any, tokens: int) -> List[Any]:
        return [[[type(member).__name__, kind_of(member).meta(member, tokens)]
                 for member in cache.caches]]

    def restore(self, parts: List[Any], meta: List[Any], tokens: int) -> Any:
        (members,) = meta
        if len(members) != len(parts):
            raise ValueError(f"{len(parts)} states of {len(members)} members")
        return mlx_caches.CacheList(*(restored(name, part, own, tokens)
                                      for (name, own), part in zip(members, parts)))


_KINDS: Dict[str, Kind] = {
    "KVCache": KeysAndValues(mlx_caches.KVCache),
    "ConcatenateKVCache": KeysAndValues(mlx_caches.ConcatenateKVCache),
    "QuantizedKVCache": Quantized(),
    "RotatingKVCache": Rotating(),
    "ChunkedKVCache": Chunked(),
    "ArraysCache": Arrays(),
    "CacheList": Members(),
    WHOLE_CACHE_LIST: Members(),
}


def is_cut(layer_type: str) -> bool:
    """As kvkeep does it: True if each block holds its tokens, False if one holds the whole state."""
    whole = ("RotatingKVCache", "ChunkedKVCache", "ArraysCache", WHOLE_CACHE_LIST)
    return layer_type not in whole


def kind_of(cache: Any) -> Kind:
    """InvalidArgument for a class that is not kept, such as a model's own subclass."""
    name = type(cache).__name__
    if name not in _KINDS or getattr(mlx_caches, name, None) is not type(cache):
        raise InvalidArgument(f"is a {name}, which cannot be kept")
    return _KINDS[name]


def restored(layer_type: str, parts: List[Any], meta: Optional[List[Any]], tokens: int) -> Any:
    """mlx-lm's cache of a layer. KeyError for a type that is not kept."""
    return _KINDS[layer_type].restore(parts, meta or [], tokens)


def _rows(buffer: Optional[mx.array], tokens: int, offset: int) -> mx.array:
    rows = _single(buffer)
    if not tokens <= offset <= rows.shape[2]:
        raise InvalidArgument(f"holds {rows.shape[2]} rows after {offset} tokens")
    return rows[..., :tokens, :]


def _single(buffer: Optional[mx.array]) -> mx.array:
    if buffer is None or buffer.ndim != 4 or buffer.shape[0] != 1:
        found = "nothing" if buffer is None else f"an array of shape {buffer.shape}"
        raise InvalidArgument(f"holds {found} in place of one sequence, [1, heads, tokens, width]")
    return buffer


def _nested(state: Any) -> Any:
    """A state that may stand inside an NState."""
    return NState(state.subs, "CacheList") if isinstance(state, CacheList) else state
