"""Cutting a KV cache into blocks and rebuilding it, whatever is missing. No model is involved."""
import itertools
import sys
from pathlib import Path

import pytest

numpy = pytest.importorskip("numpy")
sys.path.append(str(Path(__file__).parent.parent / "demo"))
import kv_blocks

LAYERS, HEADS, HEAD_SIZE = 3, 2, 4
BLOCK = 8
BLOCKS = 4
CAPACITY = BLOCKS * BLOCK + 5


class Layer:
    def __init__(self):
        self.keys = numpy.zeros((1, HEADS, CAPACITY, HEAD_SIZE), numpy.float32)
        self.values = numpy.zeros((1, HEADS, CAPACITY, HEAD_SIZE), numpy.float32)
        self.offset = 0


def empty_cache():
    return [Layer() for _ in range(LAYERS)]


def compute(cache, start, stop):
    """A network's part: appends a state that depends on the whole of the past."""
    for depth, layer in enumerate(cache):
        assert layer.offset == start
        for position in range(start, stop):
            past = layer.keys[..., :position, :].sum() * 0.001
            layer.keys[..., position, :] = past + position + depth + 1
            layer.values[..., position, :] = past - position - depth - 1
        layer.offset = stop


def unbroken():
    cache = empty_cache()
    for start, stop in kv_blocks.spans(BLOCKS * BLOCK, BLOCK):
        compute(cache, start, stop)
    return cache


def stored(cache):
    """Blocks as a store gives them: copies, read-only."""
    blocks = []
    for start, stop in kv_blocks.spans(BLOCKS * BLOCK, BLOCK):
        layers = [tuple(part.copy() for part in pair) for pair in kv_blocks.cut(cache, start, stop)]
        for part in itertools.chain(*layers):
            part.flags.writeable = False
        blocks.append(layers)
    return blocks


def assert_same(left, right):
    for a, b in zip(left, right, strict=True):
        assert a.offset == b.offset
        assert numpy.array_equal(a.keys, b.keys)
        assert numpy.array_equal(a.values, b.values)


@pytest.mark.parametrize("num_tokens, expected", [
    (0, []), (BLOCK - 1, []), (BLOCK, [(0, 8)]), (2 * BLOCK - 1, [(0, 8)]),
    (2 * BLOCK + 3, [(0, 8), (8, 16)])])
def test_only_full_blocks_are_cut(num_tokens, expected):
    assert kv_blocks.spans(num_tokens, BLOCK) == expected


def test_a_cut_is_a_view_of_every_layer():
    cache = unbroken()
    layers = kv_blocks.cut(cache, BLOCK, 2 * BLOCK)
    assert len(layers) == LAYERS
    for layer, (keys, values) in zip(cache, layers):
        assert keys.shape == values.shape == (1, HEADS, BLOCK, HEAD_SIZE)
        assert numpy.shares_memory(keys, layer.keys)
        assert numpy.shares_memory(values, layer.values)


@pytest.mark.parametrize("missing", [set(chosen) for count in range(BLOCKS + 1)
                                     for chosen in itertools.combinations(range(BLOCKS), count)])
def test_a_rebuilt_cache_equals_the_unbroken_one_and_computes_only_what_is_missing(missing):
    original = unbroken()
    blocks = [None if i in missing else layers for i, layers in enumerate(stored(original))]
    cache = empty_cache()
    spans = []

    def compute_span(start, stop):
        spans.append((start, stop))
        compute(cache, start, stop)

    computed = kv_blocks.rebuild(cache, blocks, compute_span, BLOCK)

    assert computed == sorted(missing)
    assert spans == [(i * BLOCK, (i + 1) * BLOCK) for i in sorted(missing)]
    assert_same(cache, original)


def test_a_block_with_another_number_of_layers_is_refused():
    [first, *_] = stored(unbroken())
    with pytest.raises(ValueError):
        kv_blocks.rebuild(empty_cache(), [first[:-1]], compute=None, block_size=BLOCK)


def test_a_block_with_another_number_of_tokens_is_refused():
    [first, *_] = stored(unbroken())
    short = [tuple(part[..., : BLOCK // 2, :] for part in pair) for pair in first]
    with pytest.raises(ValueError):
        kv_blocks.rebuild(empty_cache(), [short], compute=None, block_size=BLOCK)
