"""Cutting an mlx-lm KV cache into blocks of tokens and putting it together again.

A cache here is mlx-lm's: one object per layer with `keys` and `values` of shape
[1, heads, capacity, head size] and `offset`, the number of tokens that are filled in. Nothing in
this file needs MLX; any arrays that slice like numpy's and have a writable buffer will do.
"""
import numpy

BLOCK_SIZE = 256  # Tokens.


def spans(num_tokens, block_size=BLOCK_SIZE):
    """(start, stop) of every full block."""
    return [(start, start + block_size)
            for start in range(0, num_tokens - block_size + 1, block_size)]


def cut(cache, start, stop):
    """The state of tokens start … stop - 1: a pair (keys, values) per layer, without a copy."""
    return [(layer.keys[..., start:stop, :], layer.values[..., start:stop, :]) for layer in cache]


def place(cache, layers, start, stop):
    """Copies a block's layers to their position; the cache then ends with that block.

    One copy, from the block's image into the cache's own memory. The cache must have been
    allocated, with room up to `stop`.
    """
    for layer, pair in zip(cache, layers, strict=True):
        for buffer, part in zip((layer.keys, layer.values), pair, strict=True):
            numpy.asarray(memoryview(buffer))[..., start:stop, :] = numpy.asarray(part)
        layer.offset = stop


def rebuild(cache, blocks, compute, block_size=BLOCK_SIZE):
    """Fills an empty cache with `blocks`, in order; returns the indices of those it had to compute.

    blocks[i] is the list of layers of block i, or None where it is missing. compute(start, stop)
    runs the network over these tokens with the cache as it is, so a missing block is computed from
    the blocks before it, and the blocks after it are used as they were stored.
    """
    computed = []
    for i, layers in enumerate(blocks):
        start, stop = i * block_size, (i + 1) * block_size
        if layers is None:
            compute(start, stop)
            computed.append(i)
        else:
            place(cache, layers, start, stop)
    return computed
