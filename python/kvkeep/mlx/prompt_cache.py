"""PromptCache: prompt caches of mlx-lm by their tokens."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .._cache import BlockCache
from .._errors import InvalidArgument
from .._kvkeep import PrefixCache
from .._values import StoreReport
from ._layers import is_cut
from ._prepared import PreparedPrompt, prepare, token_ids
from ._restored import restore

# Changes with what a state looks like in a block, so that older ones are not found any more.
STATE_FORMAT = "mlx-lm-1"


log = logging.getLogger("kvkeep.mlx")


class PromptCache:
    """The longest stored prefix of a prompt, as a prompt cache of mlx-lm, and a place to store it.

        with kvkeep.BlockCache("blocks", max_size="50GB") as blocks:
            prompts = kvkeep.mlx.PromptCache(blocks, fields={"model": "…"})
            cache, known = prompts.fetch(tokens)       # None, 0: nothing is stored
            cache = cache or make_prompt_cache(model)
            ...                                        # the model computes tokens[known:]
            prompts.store(tokens, cache)

    cache: a kvkeep.BlockCache without layer_types and num_layers. It has to stay open.
    block_size: tokens of a block: what two prompts share is found in multiples of it.
    fields: whatever changes the state for equal tokens: model, adapter, quantisation, … as a dict of
        str. Prompts stored with other fields are not found.
    salt: of a tenant, who then does not find what others stored.
    partial_tails: what becomes of the tokens after the last full block: "none", "hot" (kept in RAM),
        "all" (kept as any block). None: "all" for layers that cannot be cut, a sliding window or a
        recurrent state, whose prompts would hardly ever end with a block; "hot" for others.
    lease: seconds for which what a fetch() has found stays while it is loaded.
    max_blocks: how many blocks fetches may hold at the same time.

    Layers may be KVCache, ConcatenateKVCache, QuantizedKVCache, RotatingKVCache, ChunkedKVCache,
    ArraysCache and CacheLists of these.

    Threads: fetch(), store() and prepare() evaluate arrays: call them where the model runs. The others
    may be called from any thread.
    """

    def __init__(
        self,
        cache: BlockCache,
        *,
        block_size: int = 256,
        fields: Optional[Mapping[str, str]] = None,
        salt: str = "",
        partial_tails: Optional[str] = None,
        lease: float = 60.0,
        max_blocks: int = 100_000,
    ) -> None:
        self._cache, self._salt, self._lock = cache, salt, threading.Lock()
        self._options: Dict[str, Any] = {
            "block_size": block_size,
            "fields": {**(fields or {}), "state": STATE_FORMAT},
            "lease": lease,
            "max_blocks": max_blocks,
        }
        self._layer_types: Optional[List[str]] = None  # Of what was fetched or stored last.
        self._tails_follow_layers = partial_tails is None
        self._prefixes = self._open(partial_tails or "all")

    def fetch(self, tokens: Iterable[int], *, more_than: int = 0) -> Tuple[Optional[List[Any]], int]:
        """A prompt cache of a prefix of the prompt, and how many tokens that is; or None and 0.

        At least one token is left to compute. The prompt cache is evaluated and the caller's alone.
        more_than: shorter prefixes are not worth loading.
        InvalidArgument, TypeError: a token is no integer from 0 to 4294967295.
        """
        ids = token_ids(tokens)
        prefixes = self._prefixes
        with prefixes.match(ids, salt=self._salt) as match:
            if not more_than < match.tokens < len(ids):
                return None, 0
            prefix = prefixes.load(match)
        if prefix.reason is not None:
            log.warning("kvkeep: of %d tokens found, %d could be loaded: %s", match.tokens,
                        prefix.tokens, prefix.reason)
        if not more_than < prefix.tokens < len(ids):
            return None, 0
        restored = restore(prefix)
        if restored is None:
            return None, 0
        self._learn(restored.layer_types)
        return restored.prompt_cache, prefix.tokens

    def store(self, tokens: Iterable[int], prompt_cache: Sequence[Any]) -> StoreReport:
        """Stores what is not there yet; the report says how much that was, and why it ended early.

        Where the prompt cache has computed fewer or more tokens than there are, or its layers differ in
        that, the tokens that all of them have computed are stored.
        InvalidArgument: a token as for fetch(); layers of other types than those stored; a layer that is
        not kept, or whose state belongs to another number of tokens and cannot be cut.
        """
        return self.store_prepared(self.prepare(tokens, prompt_cache))

    def prepare(self, tokens: Iterable[int], prompt_cache: Sequence[Any]) -> PreparedPrompt:
        """The first half of store(): checks, cuts and evaluates, and does not copy what can be cut."""
        prompt = prepare(tokens, prompt_cache)
        if self._layer_types not in (None, prompt.layer_types):
            raise InvalidArgument(
                f"prompt_cache: has {_counted(prompt.layer_types)} for layers, what is stored has "
                f"{_counted(self._layer_types)}")
        return prompt

    def store_prepared(self, prompt: PreparedPrompt) -> StoreReport:
        """The second half of store(), on any thread: makes keys, copies and saves."""
        self._learn(prompt.layer_types)
        return self._prefixes.store(
            prompt.tokens, prompt.layers, layer_types=prompt.layer_types,
            meta_states=prompt.meta_states, salt=self._salt)

    def why(self, tokens: Iterable[int]) -> str:
        """How far the prompt is stored, and why not further."""
        return self._prefixes.why(token_ids(tokens), salt=self._salt)

    def stats(self) -> Dict[str, Any]:
        """What the prefix cache counts."""
        return self._prefixes.stats()

    def _learn(self, layer_types: List[str]) -> None:
        with self._lock:
            if self._tails_follow_layers and self._layer_types is None and all(map(is_cut, layer_types)):
                self._prefixes = self._open("hot")
            self._layer_types = layer_types

    def _open(self, partial_tails: str) -> PrefixCache:
        return PrefixCache(self._cache, partial_tails=partial_tails, **self._options)


def _counted(layer_types: Sequence[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(layer_types).items())
