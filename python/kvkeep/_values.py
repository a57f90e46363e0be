"""Plain values that go into and come out of a cache. The extension module makes and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

__all__ = [
    "Block",
    "BlockMeta",
    "CacheList",
    "CloseReport",
    "EvictionReport",
    "ExpectedLayout",
    "FlushReport",
    "NState",
    "SaveResult",
    "StoreReport",
    "TurboQuant",
]


@dataclass(frozen=True)
class NState:
    """A layer state of any number of elements, or one nested in another.

    elements: arrays, None, lists or tuples of elements, and NState; up to 32 levels.
    class_name: name of the class that the state belongs to, e.g. "ArraysCache".
    """

    elements: Sequence[Any]
    class_name: str = ""


@dataclass(frozen=True)
class CacheList:
    """A layer state made of sub-states, each a pair (keys, values) or an NState."""

    subs: Sequence[Any]


@dataclass(frozen=True)
class TurboQuant:
    """A quantised layer state: two records, each (record type, {field: array}).

    For example ("TurboQuantMSEState", {"norms": norms, "indices": indices}).
    """

    key: Tuple[str, Dict[str, Any]]
    value: Tuple[str, Dict[str, Any]]


Layer = Union[Tuple[Any, Any], NState, CacheList, TurboQuant]


@dataclass(frozen=True)
class Block:
    """A loaded block. Its tensors stay valid for as long as somebody holds them."""

    layers: List[Layer]
    """One state per layer; pairs are tuples (keys, values) of kvkeep.Tensor or None."""
    token_count: int
    model_name: str
    block_size: int
    """Tokens of a full block."""
    signature: str
    """JSON: what must match for two caches to be interchangeable."""
    layer_types: Optional[List[str]]
    meta_states: Optional[List[List[Any]]]
    parent: Optional[bytes]
    """Key of the block before this one, where the save named it."""
    source: str
    """"hot": from the hot tier; "pending": from RAM, on its way to disk; "disk": read and verified."""


@dataclass(frozen=True)
class BlockMeta:
    """One block as the index and its file's header know it."""

    key: bytes
    path: Path
    file_size: int
    """Bytes."""
    created_at: float
    """Seconds since the Unix epoch."""
    last_access: float
    num_layers: int
    token_count: int
    model_name: str
    block_size: int
    """Tokens of a full block."""
    signature: str
    """JSON: what must match for two caches to be interchangeable."""
    layer_types: Optional[List[str]]
    meta_states: Optional[List[List[Any]]]
    parent: Optional[bytes]
    """Key of the block before this one, where the save named it."""


@dataclass(frozen=True)
class ExpectedLayout:
    """What blocks must be for to be served by a cache; empty, 0 or None: not checked."""

    model_name: str
    num_layers: int
    block_size: int
    """Tokens of a full block."""
    layer_types: Optional[List[str]]
    turboquant_bits: Optional[float]
    """Bits per value of TurboQuant states."""


@dataclass(frozen=True)
class SaveResult:
    """What became of a save. False if it was refused."""

    outcome: str
    """"stored": kept in RAM, written later; "queued": on its way to disk; "written": by the
    call itself, as the queue stayed full; "present": was there already; "refused"."""
    reason: Optional[str] = None
    """Why it was refused, as counted in stats()["save_refused"]."""
    message: str = ""

    def __bool__(self) -> bool:
        return self.outcome != "refused"


@dataclass(frozen=True)
class StoreReport:
    """What a store of a prompt came to."""

    tokens: int
    """How many of the prompt's tokens are stored now, from the first on."""
    stored_blocks: int
    """Saved by this call."""
    present_blocks: int
    """Were there already."""
    refused: Optional[str]
    """Why it ended early, as counted in stats()["save_refused"]; None if it did not."""
    message: str = ""


@dataclass(frozen=True)
class EvictionReport:
    evicted: int
    """Blocks given up."""
    failed: int
    """Files that could not be removed; they are left alone for a while."""
    deferred_bytes: int
    """Bytes that still have to go."""


@dataclass(frozen=True)
class FlushReport:
    flushed: int
    """Blocks written while flushing."""
    failed: List[bytes]
    """Keys of accepted blocks that could not be written."""


@dataclass(frozen=True)
class CloseReport:
    flushed: int
    """Blocks written while closing."""
    failed: List[bytes]
    """Keys of accepted blocks that could not be written."""
    abandoned: List[bytes]
    """Keys of blocks that were still queued when the time was over."""
