"""Named tuples of TurboQuant records: those of mlx-vlm where it is installed, else equal ones."""

from __future__ import annotations

from collections import namedtuple
from importlib import import_module
from typing import Any, Dict, Tuple

__all__ = ["from_record", "to_record"]

# By record type; each type has one list of fields.
_classes: Dict[str, Any] = {}


def to_record(state: Any) -> Tuple[str, Dict[str, Any]]:
    """A named tuple as (record type, {field: array})."""
    return type(state).__name__, dict(zip(state._fields, state))


def from_record(name: str, fields: Dict[str, Any]) -> Any:
    """The inverse: an instance of the class that the engine's code checks for."""
    return _class_of(name, tuple(fields))(**fields)


def _class_of(name: str, fields: Tuple[str, ...]) -> Any:
    if name not in _classes:
        try:
            _classes[name] = getattr(import_module("mlx_vlm.turboquant"), name)
        except (ImportError, AttributeError):
            _classes[name] = namedtuple(name, fields)
    return _classes[name]
