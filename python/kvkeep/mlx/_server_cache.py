"""mlx-lm's prompt cache in RAM, with a PromptStore behind it."""

from __future__ import annotations

import logging
from typing import Any, List, Optional, Tuple

from mlx_lm.models.cache import LRUPromptCache, can_trim_prompt_cache, trim_prompt_cache

from ._prompt_store import PromptStore

log = logging.getLogger("kvkeep.mlx")


class StoredPromptCache(LRUPromptCache):
    """What mlx-lm's server calls. Prompts stay in RAM as mlx-lm has it, and go to the store besides;
    a prompt is taken from where more of it is. Its nbytes are those in RAM."""

    def __init__(self, max_size: int = 10, *, store: PromptStore) -> None:
        super().__init__(max_size)
        self._store = store

    def fetch_nearest_cache(self, model: Any, tokens: List[int]) -> Tuple[Optional[List[Any]], List[int]]:
        cache, rest = super().fetch_nearest_cache(model, tokens)
        cache, rest = _with_a_rest(cache, rest, tokens)
        in_ram = len(tokens) - len(rest)
        stored, covered = self._store.fetch(model, tokens, more_than=in_ram)
        log.info("kvkeep: %d tokens, %d in RAM, %d taken from the store", len(tokens), in_ram, covered)
        return (cache, rest) if stored is None else (stored, tokens[covered:])

    def insert_cache(self, model: Any, tokens: List[int], prompt_cache: List[Any], **more: Any) -> None:
        self._store.submit(model, tokens, prompt_cache)
        super().insert_cache(model, tokens, prompt_cache, **more)


def _with_a_rest(cache: Any, rest: List[int], tokens: List[int]) -> Tuple[Any, List[int]]:
    """The server needs a token to compute; where all are cached, the last is taken back."""
    if cache is None or rest:
        return cache, rest
    if len(tokens) == 1 or not can_trim_prompt_cache(cache):
        return None, tokens
    trim_prompt_cache(cache, 1)
    return cache, tokens[-1:]
