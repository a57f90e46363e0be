"""Meta states as engines give them, for a save."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional

__all__ = ["to_meta_states"]


def to_meta_states(states: Optional[Iterable[Any]]) -> Optional[List[List[Any]]]:
    """One list per layer. None and "" are no meta state; text and numbers stand for a list of one."""
    return None if not states else [_to_meta_state(state) for state in states]


def _to_meta_state(state: Any) -> List[Any]:
    if state is None or state == "":
        return []
    return list(state) if isinstance(state, (list, tuple)) else [state]
