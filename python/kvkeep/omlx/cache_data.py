"""Layer states as oMLX passes them <-> layer states of kvkeep.

oMLX's form of one layer, with arrays of MLX:

    (keys, values)                                     a pair; a member may be None
    ("__nstate__", class_name, [element, ...])         an element: array, None, tuple, or another __nstate__
    ("__cache_list__", [sub_state, ...])               going in; each a pair or an __nstate__
    [sub_state, ...]                                   the same coming out; also accepted going in
    ("__turboquant_v2__", (key_state, value_state))    named tuples; "__turboquant__" means the same
    (zeros((1,)), zeros((1,)))                         a placeholder is a pair like any other
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, List

from .._values import CacheList, Layer, NState, TurboQuant
from .turboquant import from_record, to_record

__all__ = ["from_layers", "to_layers"]

_NSTATE = "__nstate__"
_CACHE_LIST = "__cache_list__"
_TURBOQUANT = "__turboquant_v2__"
_TURBOQUANT_OLD = "__turboquant__"


def to_layers(cache_data: Iterable[Any]) -> List[Any]:
    """For kvkeep's save(). Arrays are passed on as they are.

    TypeError, ValueError: a state of no known form, here or by save().
    """
    return [_to_layer(state) for state in cache_data]


def from_layers(layers: Iterable[Layer], to_array: Callable[[Any], Any]) -> List[Any]:
    """What kvkeep's load() gave, with `to_array` applied to every tensor."""
    return _Reader(to_array).layers(layers)


def _marker(state: Any) -> Any:
    """The text that a marked state begins with, or None."""
    marked = isinstance(state, tuple) and state and isinstance(state[0], str)
    return state[0] if marked else None


def _to_layer(state: Any) -> Any:
    marker = _marker(state)
    if marker == _CACHE_LIST:
        _, subs = state
        return _to_cache_list(subs)
    if marker in (_TURBOQUANT, _TURBOQUANT_OLD):
        _, (key, value) = state
        return TurboQuant(to_record(key), to_record(value))
    if isinstance(state, list) and all(isinstance(sub, (list, tuple)) for sub in state):
        return _to_cache_list(state)
    return _to_sub_state(state)


def _to_cache_list(subs: Any) -> CacheList:
    return CacheList([_to_sub_state(sub) for sub in _listed(subs, _CACHE_LIST)])


def _listed(items: Any, marker: str) -> Any:
    """`items`, if they are a list: the rows of an array would make a list, too."""
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"{marker}: expected a list, got {type(items).__name__}")
    return items


def _to_sub_state(state: Any) -> Any:
    return _to_nstate(state) if _marker(state) == _NSTATE else state


def _to_nstate(state: Any) -> NState:
    _, class_name, elements = state
    listed = _listed(elements, _NSTATE)
    return NState([_to_element(element) for element in listed], class_name or "")


def _to_element(element: Any) -> Any:
    if _marker(element) == _NSTATE:
        return _to_nstate(element)
    if isinstance(element, (list, tuple)):
        return tuple(_to_element(child) for child in element)
    return element


class _Reader:
    def __init__(self, to_array: Callable[[Any], Any]) -> None:
        self._to_array = to_array

    def layers(self, layers: Iterable[Layer]) -> List[Any]:
        return [self._layer(layer) for layer in layers]

    def _layer(self, layer: Any) -> Any:
        if isinstance(layer, CacheList):
            return [self._sub_state(sub) for sub in layer.subs]
        if isinstance(layer, TurboQuant):
            return _TURBOQUANT, (self._record(layer.key), self._record(layer.value))
        return self._sub_state(layer)

    def _sub_state(self, state: Any) -> Any:
        """Two plain elements are a pair, whatever their class is called."""
        elements = state.elements if isinstance(state, NState) else state
        if len(elements) == 2 and not any(isinstance(e, (tuple, NState)) for e in elements):
            return self._elements(elements)
        return self._nstate(state)

    def _nstate(self, state: NState) -> Any:
        return _NSTATE, state.class_name or None, list(self._elements(state.elements))

    def _elements(self, elements: Iterable[Any]) -> Any:
        return tuple(self._element(element) for element in elements)

    def _element(self, element: Any) -> Any:
        if element is None:
            return None
        if isinstance(element, NState):
            return self._nstate(element)
        if isinstance(element, tuple):
            return self._elements(element)
        return self._to_array(element)

    def _record(self, record: Any) -> Any:
        name, fields = record
        return from_record(name, {field: self._to_array(array) for field, array in fields.items()})
