"""Tensors of kvkeep as MLX arrays, in one copy: from the blocks' images into the memory of the arrays.

mx.load() reads a safetensors file from any object that reads like a file, straight into the arrays that
it makes, so a prefix is shown to it as such a file. dtypes stay as they are, BF16 included.
"""

from __future__ import annotations

import json
import struct
import threading
from typing import Any, Dict, List, Protocol, Sequence, Tuple

import mlx.core as mx

from .._errors import DataLoss
from .._kvkeep import Tensor


class Source(Protocol):
    """What kvkeep.JoinedTensor has, and WholeTensor."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def copy_into(self, buffer: Any) -> None: ...


class WholeTensor:
    """A tensor of one block, to be read as a joined one is."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.dtype, self.shape, self.nbytes = tensor.dtype, tensor.shape, tensor.nbytes

    def copy_into(self, buffer: Any) -> None:
        memoryview(buffer)[:] = self._tensor.raw


def to_mlx(sources: Sequence[Source]) -> List[mx.array]:
    """The sources as evaluated arrays that refer to nothing else."""
    file = _TensorFile(sources)
    load: Any = mx.load  # Its stubs know no object that only reads.
    arrays: Dict[str, mx.array] = load(file, format="safetensors") if sources else {}
    mx.eval(list(arrays.values()))
    file.require_all_read()
    return [arrays[str(i)] for i in range(len(sources))]


class _TensorFile:
    """The sources as a safetensors file that exists only while MLX reads it.

    MLX reads from threads of its own, each read a seek() and a readinto(): every thread has its own
    position. What goes wrong in a read is an error of mx.load().
    """

    closed = False

    def __init__(self, sources: Sequence[Source]) -> None:
        self._head = _header(sources)
        self._unread: Dict[int, Source] = {}
        end = len(self._head)
        for source in sources:
            if source.nbytes:
                self._unread[end] = source
            end += source.nbytes
        self._end = end
        self._position = threading.local()

    def tell(self) -> int:
        return getattr(self._position, "value", 0)

    def seek(self, offset: int, whence: int = 0) -> int:
        base = {0: 0, 1: self.tell(), 2: self._end}[whence]
        self._position.value = base + offset
        return self._position.value

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        at = self.tell()
        if not view.nbytes:
            return 0
        if at < len(self._head):
            view[:] = self._head[at : at + view.nbytes]
        else:
            source = self._unread.pop(at)
            if source.nbytes != view.nbytes:
                raise DataLoss(f"{view.nbytes} bytes asked for, the tensor has {source.nbytes}")
            source.copy_into(view)
        self._position.value = at + view.nbytes
        return view.nbytes

    def read(self, size: int = -1) -> bytes:
        raise NotImplementedError("only readinto()")  # mx.load() looks for it and does not call it.

    def require_all_read(self) -> None:
        if self._unread:
            raise DataLoss(f"mx.load() left {len(self._unread)} tensors unread")


def _header(sources: Sequence[Source]) -> bytes:
    entries, begin = {}, 0
    for i, source in enumerate(sources):
        end = begin + source.nbytes
        entries[str(i)] = {
            "dtype": source.dtype, "shape": list(source.shape), "data_offsets": [begin, end]
        }
        begin = end
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text
