"""A prompt cache of mlx-lm made ready for kvkeep.PrefixCache.store()."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Iterable, List, Sequence

import mlx.core as mx

from .._errors import InvalidArgument
from ._layers import Kind, kind_of
from ._nesting import leaves

MAX_TOKEN = 0xFFFFFFFF


@dataclass(frozen=True)
class PreparedPrompt:
    """A state that any thread may store: evaluated views, which keep their arrays alive."""

    tokens: List[int]
    """Those that the state covers: all that were given, or fewer."""
    layers: List[Any]
    layer_types: List[str]
    meta_states: List[List[Any]]


def prepare(tokens: Iterable[int], prompt_cache: Sequence[Any]) -> PreparedPrompt:
    """Cuts the state to the tokens and evaluates it, on the thread that owns it. Copies no layer that
    can be cut. InvalidArgument names what does not fit."""
    ids = token_ids(tokens)
    kinds = [_of_layer(i, kind_of, cache) for i, cache in enumerate(prompt_cache)]
    if not kinds:
        raise InvalidArgument("prompt_cache: has no layers")
    count = _covered(len(ids), prompt_cache, kinds)
    layers = [_of_layer(i, kind.state, cache, count)
              for i, (kind, cache) in enumerate(zip(kinds, prompt_cache))]
    mx.eval(list(leaves(layers)))
    return PreparedPrompt(
        ids[:count], layers,
        [kind.layer_type(cache) for kind, cache in zip(kinds, prompt_cache)],
        [kind.meta(cache, count) for kind, cache in zip(kinds, prompt_cache)])


def token_ids(tokens: Iterable[int]) -> List[int]:
    """InvalidArgument, TypeError: a token that is no integer from 0 to 4294967295."""
    ids = [operator.index(token) for token in getattr(tokens, "tolist", lambda: tokens)()]
    if ids and not 0 <= min(ids) <= max(ids) <= MAX_TOKEN:
        raise InvalidArgument(f"tokens: {min(ids)} … {max(ids)} is not within 0 … {MAX_TOKEN}")
    return ids


def _covered(num_tokens: int, prompt_cache: Sequence[Any], kinds: Sequence[Kind]) -> int:
    """How many of the tokens every layer has computed."""
    positions = [at for kind, cache in zip(kinds, prompt_cache) for at in kind.positions(cache)]
    known = sorted(at for at in positions if at is not None)
    count = min([num_tokens, *known])
    if count == 0:
        raise InvalidArgument("tokens: there are none" if num_tokens == 0 else
                              "prompt_cache: a layer has computed no token")
    if known and None in positions and known[-1] != count:
        raise InvalidArgument(
            f"prompt_cache: has computed up to {known[-1]} tokens, and not all of its layers can be "
            f"cut to {count}")
    return count


def _of_layer(index: int, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except InvalidArgument as error:
        raise InvalidArgument(f"prompt_cache: layer {index} {error}") from None
