"""States as trees: kvkeep's NState and CacheList, lists and tuples, with None or leaves inside."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Sequence

from .._values import CacheList, NState


def elements(state: Any) -> Optional[Sequence[Any]]:
    """What the state consists of; None for a leaf."""
    if isinstance(state, NState):
        return state.elements
    if isinstance(state, CacheList):
        return state.subs
    return state if isinstance(state, (list, tuple)) else None


def leaves(state: Any) -> Iterator[Any]:
    """The leaves, in order."""
    inner = elements(state)
    if inner is not None:
        for element in inner:
            yield from leaves(element)
    elif state is not None:
        yield state


def mapped(function: Callable[[Any], Any], state: Any) -> Any:
    """The same tree of lists, with the function's result for each leaf."""
    inner = elements(state)
    if inner is not None:
        return [mapped(function, element) for element in inner]
    return None if state is None else function(state)
