"""kvkeep.Tensor as a numpy array. Imported only by those who use numpy."""

from __future__ import annotations

from typing import Any, Optional

import numpy

from ._kvkeep import Tensor

_OWN = {
    "F16": "<f2",
    "F32": "<f4",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "BOOL": "?",
}
_ML_DTYPES = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}


def _dtype(name: str) -> Any:
    if name in _OWN:
        return numpy.dtype(_OWN[name])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            f"numpy has no {name} of its own: install the package ml_dtypes, or use Tensor.raw"
        ) from None
    return numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))


def as_array(tensor: Tensor, dtype: Any = None, copy: Optional[bool] = None) -> Any:
    """A read-only array over the tensor's bytes, or a copy where another dtype or a copy is asked for."""
    own = _dtype(tensor.dtype)
    array: Any = numpy.ndarray(tensor.shape, own, tensor.raw)
    if dtype is not None and numpy.dtype(dtype) != own:
        if copy is False:
            raise ValueError(f"a tensor of {tensor.dtype} cannot become {dtype} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array
