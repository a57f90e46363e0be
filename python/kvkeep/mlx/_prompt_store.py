"""The prompts of every model that a server loads, in one store."""

from __future__ import annotations

import logging
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._cache import BlockCache
from ._background import BackgroundStorer
from ._model_fields import model_fields
from ._prepared import MAX_TOKEN
from .prompt_cache import PromptCache

log = logging.getLogger("kvkeep.mlx")

ModelKey = Tuple[Optional[str], Optional[str], Optional[str]]  # Model, adapter, draft model.
PLAIN = "plain"
SECONDS_TO_STORE_AT_CLOSE = 30.0


class PromptStore:
    """Finds and stores prompts by model, for mlx-lm's server.

    Nothing that goes wrong here reaches a request: it is logged, and the prompt is computed.
    Threads: fetch() and submit() on the thread that runs the model.
    """

    def __init__(self, blocks: BlockCache, *, block_size: int, salt: str,
                 quantized: Optional[Tuple[int, int]] = None) -> None:
        """quantized: (bits, group size) that the server brings keys and values to, if it does."""
        self.blocks = blocks
        self._block_size, self._salt = block_size, salt
        # Before a prompt is long enough to be quantised, its state is plain.
        self._forms = [PLAIN] + ([_form(*quantized)] if quantized else [])
        self._prompts: Dict[Tuple[ModelKey, str], Optional[PromptCache]] = {}
        self._storer = BackgroundStorer()

    def fetch(self, model: ModelKey, tokens: Sequence[int],
              more_than: int) -> Tuple[Optional[List[Any]], int]:
        """As PromptCache.fetch(), in whichever form covers more tokens."""
        found: Tuple[Optional[List[Any]], int] = (None, 0)
        asked = _before_images(tokens)
        for form in self._forms:
            prompts = self._prompts_of(model, form)
            if prompts is None:
                continue
            try:
                found = _longer(found, prompts.fetch(asked, more_than=max(more_than, found[1])))
            except Exception:
                log.exception("kvkeep: a lookup failed; the prompt is computed")
        return found

    def submit(self, model: ModelKey, tokens: Sequence[int], prompt_cache: Sequence[Any]) -> None:
        """Prepares the prompt here and has it stored in the background."""
        prompts = self._prompts_of(model, _form_of(prompt_cache))
        known = _before_images(tokens)
        if prompts is None or not known:
            return
        try:
            prepared = prompts.prepare(known, prompt_cache)
        except Exception as error:
            self._storer.refused(str(error))
            return
        self._storer.submit(lambda: prompts.store_prepared(prepared))

    def stats(self) -> Dict[str, int]:
        return self._storer.stats()

    def close(self) -> None:
        """Stores what waits, writes everything to disk, and gives the directory free."""
        self._storer.close(SECONDS_TO_STORE_AT_CLOSE)
        self.blocks.close()

    def _prompts_of(self, model: ModelKey, form: str) -> Optional[PromptCache]:
        key = (model, form)
        if key not in self._prompts:
            self._prompts[key] = self._open(model, form)
        return self._prompts[key]

    def _open(self, model: ModelKey, form: str) -> Optional[PromptCache]:
        path, adapter, draft = model
        try:
            fields = model_fields(str(path), adapter, draft, form)
        except Exception:
            log.exception("kvkeep: %s cannot be told from other models, so it is not cached", path)
            return None
        return PromptCache(self.blocks, block_size=self._block_size, fields=fields, salt=self._salt)


def _before_images(tokens: Sequence[int]) -> Sequence[int]:
    """mlx-lm puts negative ids where an image is; only what comes before the first one is kept."""
    for i, token in enumerate(tokens):
        if not 0 <= token <= MAX_TOKEN:
            return tokens[:i]
    return tokens


def _form(bits: int, group_size: int) -> str:
    return f"{bits} bits in groups of {group_size}"


def _form_of(prompt_cache: Sequence[Any]) -> str:
    for layer in prompt_cache:
        if type(layer).__name__ == "QuantizedKVCache":
            return _form(layer.bits, layer.group_size)
    return PLAIN


def _longer(one: Tuple[Any, int], other: Tuple[Any, int]) -> Tuple[Any, int]:
    return other if other[1] > one[1] else one
