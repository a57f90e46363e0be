"""A loaded prefix as a prompt cache of mlx-lm."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence

from .._kvkeep import JoinedTensor, LoadedPrefix
from .._values import Block
from ._arrays import WholeTensor, to_mlx
from ._layers import is_cut, restored
from ._nesting import leaves, mapped


class Restored(NamedTuple):
    prompt_cache: List[Any]
    layer_types: List[str]


def restore(prefix: LoadedPrefix) -> Optional[Restored]:
    """One cache per layer, evaluated; None if the blocks are not of one model."""
    blocks = prefix.blocks
    last = blocks[-1]
    if not last.layer_types or not last.meta_states or not _alike(blocks):
        return None
    sources = [
        _by_path(prefix.joined(i)) if is_cut(layer_type) else mapped(WholeTensor, last.layers[i])
        for i, layer_type in enumerate(last.layer_types)]
    arrays = iter(to_mlx(list(leaves(sources))))
    parts = mapped(lambda source: next(arrays), sources)
    try:
        caches = [restored(layer_type, part, meta, prefix.tokens)
                  for layer_type, part, meta in zip(last.layer_types, parts, last.meta_states)]
    except (KeyError, TypeError, ValueError):
        return None  # Stored under this key by somebody who keeps states in another way.
    return Restored(caches, last.layer_types)


def _alike(blocks: Sequence[Block]) -> bool:
    last = blocks[-1]
    cut = [i for i, layer_type in enumerate(last.layer_types or []) if is_cut(layer_type)]
    return all(
        block.layer_types == last.layer_types
        and len(block.layers) == len(last.layers) == len(block.meta_states or [])
        and all((block.meta_states or [])[i] == (last.meta_states or [])[i] for i in cut)
        for block in blocks)


def _by_path(tensors: Sequence[JoinedTensor]) -> List[Any]:
    """Joined tensors, nested as their paths say; they come in the order of their paths."""
    root: List[Any] = []
    for tensor in tensors:
        level = root
        *outer, index = tensor.path
        for at in outer:
            if at == len(level):
                level.append([])
            level = level[at]
        if index != len(level):
            raise ValueError(f"no tensor at {(*outer, len(level))}")
        level.append(tensor)
    return root
