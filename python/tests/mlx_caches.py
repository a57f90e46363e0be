"""Prompt caches of mlx-lm of every kind, small, with random contents; and what a model would see of them."""

import mlx.core as mx
from mlx_lm.models import cache as mlx_caches

HEADS, WIDTH, WINDOW = 2, 64, 48


def rows(tokens, dtype):
    return mx.random.normal((1, HEADS, tokens, WIDTH)).astype(dtype)


def append(cache, tokens, dtype=mx.bfloat16, step=16):
    """Lets the cache see the state of so many more tokens, as a prefill in steps would."""
    for start in range(0, tokens, step):
        count = min(step, tokens - start)
        cache.update_and_fetch(rows(count, dtype), rows(count, dtype))
    return cache


def kv(tokens, dtype=mx.bfloat16):
    return append(mlx_caches.KVCache(), tokens, dtype)


def quantized(tokens, bits=4):
    return append(mlx_caches.QuantizedKVCache(32, bits), tokens)


def rotating(tokens, keep=0, step=16):
    return append(mlx_caches.RotatingKVCache(WINDOW, keep), tokens, step=step)


def chunked(tokens):
    cache = mlx_caches.ChunkedKVCache(WINDOW)
    for _ in range(tokens // 10):
        append(cache, 10, step=10)
        cache.maybe_trim_front()
    return cache


def arrays(tokens):
    cache = mlx_caches.ArraysCache(2)
    cache[0] = mx.random.normal((1, 3, WIDTH))
    return cache


def listed(*members):
    return lambda tokens: mlx_caches.CacheList(*(make(tokens) for make in members))


# Name -> the layers of a model, each made by its number of tokens.
CUT = {
    "bfloat16": [kv, kv, kv],
    "float16": [lambda n: kv(n, mx.float16)],
    "float32": [lambda n: kv(n, mx.float32)],
    "concatenate": [lambda n: append(mlx_caches.ConcatenateKVCache(), n)],
    "4 bits": [quantized, quantized],
    "8 bits": [lambda n: quantized(n, 8)],
    "list": [listed(kv, kv), kv],
    "list with quantized": [listed(kv, quantized)],
}
WHOLE = {
    "window": [kv, rotating],
    "window in single steps": [lambda n: rotating(n, step=1)],
    "window of one step": [lambda n: rotating(n, step=n)],
    "window that keeps": [lambda n: rotating(n, keep=4), lambda n: rotating(n, keep=4, step=1)],
    "chunk": [kv, chunked],
    "arrays": [arrays, kv],
    "only arrays": [arrays],
    "list with window": [listed(kv, rotating), kv],
    "list of everything": [listed(kv, rotating, arrays, quantized)],
    "list in list": [listed(kv, listed(kv, kv))],
}
EVERY = {**CUT, **WHOLE}


def made(name, tokens, seed=1):
    mx.random.seed(seed)
    return [make(tokens) for make in EVERY[name]]


def assert_same(given, found, tokens):
    """Every layer is of the same class and holds the same bytes for so many tokens."""
    assert [type(layer) for layer in found] == [type(layer) for layer in given]
    for one, other in zip(given, found):
        assert _parameters(one) == _parameters(other)
        for a, b in zip(_state(one, tokens), _state(other, tokens), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.dtype == b.dtype and a.shape == b.shape
                assert memoryview(mx.contiguous(a)).tobytes() == memoryview(mx.contiguous(b)).tobytes()


def _parameters(cache):
    names = ("keep", "max_size", "bits", "group_size", "left_padding", "lengths", "chunk_size",
             "start_position")
    return {name: getattr(cache, name) for name in names if hasattr(cache, name)}


def _state(cache, tokens):
    """The rows that a model attends to after so many tokens, oldest first."""
    if isinstance(cache, mlx_caches.CacheList):
        return [part for member in cache.caches for part in _state(member, tokens)]
    if isinstance(cache, mlx_caches.ArraysCache):
        return cache.cache
    if isinstance(cache, mlx_caches.RotatingKVCache):
        assert cache.offset == tokens
        ordered = [cache._temporal_order(buffer) for buffer in (cache.keys, cache.values)]
        recent = min(tokens, cache.max_size) - cache.keep
        return [part[..., select, :] for part in ordered
                for select in (slice(0, cache.keep), slice(part.shape[2] - recent, None))]
    tokens -= getattr(cache, "start_position", 0)
    sides = [side if isinstance(side, (tuple, list)) else [side] for side in (cache.keys, cache.values)]
    assert cache.offset >= tokens
    return [part[..., :tokens, :] for side in sides for part in side]
