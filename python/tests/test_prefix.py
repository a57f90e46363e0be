"""kvkeep.PrefixCache: tokens in, longest cached prefix out."""

import gc

import numpy
import pytest

import kvkeep

BLOCK = 16
TYPES = ["KVCache", "KVCache"]


def state_of(tokens, first=0):
    """Two layers whose rows are a function of all tokens up to their own."""
    chain = numpy.cumsum(numpy.asarray(tokens, dtype=numpy.uint64) * numpy.uint64(2654435761))
    rows = (chain[first:, None] + numpy.arange(8, dtype=numpy.uint64)).astype(numpy.float32)
    pair = tuple(numpy.stack([rows + part, rows - part])[None] for part in (1, 2))
    return [pair, pair[::-1]]


def loaded_state(prefix):
    layers = []
    for layer in range(len(TYPES)):
        arrays = []
        for joined in prefix.joined(layer):
            array = numpy.empty(joined.shape, dtype=numpy.float32)
            joined.copy_into(array)
            arrays.append(array)
        layers.append(tuple(arrays))
    return layers


def assert_same(prefix, tokens):
    for loaded, expected in zip(loaded_state(prefix), state_of(tokens[: prefix.tokens])):
        for a, b in zip(loaded, expected):
            numpy.testing.assert_array_equal(a, b)


@pytest.fixture
def cache(tmp_path):
    with kvkeep.BlockCache(tmp_path / "store", max_size="64MB", hot_size="8MB", min_free=0) as cache:
        yield cache


@pytest.fixture
def prefixes(cache):
    return kvkeep.PrefixCache(cache, block_size=BLOCK, fields={"model": "m"})


def test_a_stored_prompt_comes_back_for_one_that_continues_it(prefixes):
    tokens = list(range(100))
    report = prefixes.store(tokens, state_of(tokens), layer_types=TYPES)
    assert (report.tokens, report.stored_blocks, report.present_blocks, report.refused) == (100, 7, 0, None)
    longer = tokens + [7, 8, 9]
    with prefixes.match(longer) as match:
        assert match.tokens == 100 and match.reason is None
        assert [(count, source) for _, count, source in match.blocks] == [(16, "hot")] * 6 + [(4, "hot")]
        prefix = prefixes.load(match)
    assert prefix.tokens == 100 and prefix.reason is None
    assert len(prefix.blocks) == 7 and prefix.blocks[0].token_count == 16
    assert_same(prefix, longer)
    assert prefixes.load(prefixes.match(tokens)).tokens == 99


def test_a_new_process_finds_the_full_blocks(tmp_path):
    tokens = numpy.arange(40, dtype=numpy.int32)
    for expected in (0, 32):
        with kvkeep.BlockCache(tmp_path, max_size="64MB", min_free=0) as cache:
            prefixes = kvkeep.PrefixCache(cache, block_size=BLOCK)
            prefix = prefixes.load(prefixes.match(tokens))
            assert prefix.tokens == expected
            assert_same(prefix, tokens) if expected else None
            prefixes.store(tokens, state_of(tokens), layer_types=TYPES)


def test_only_the_rest_of_a_prompt_may_be_given(prefixes):
    tokens = list(range(96))
    prefixes.store(tokens[:64], state_of(tokens[:64]), layer_types=TYPES)
    report = prefixes.store(tokens, state_of(tokens, first=64), layer_types=TYPES, first_token=64)
    assert (report.stored_blocks, report.present_blocks) == (2, 4)
    prefix = prefixes.load(prefixes.match(tokens + [1]))
    assert prefix.tokens == 96
    assert_same(prefix, tokens)


def test_arrays_longer_than_the_prompt_are_given_as_views(prefixes):
    tokens = list(range(32))
    padded = [tuple(numpy.concatenate([a, numpy.zeros_like(a)], axis=2)[:, :, :32] for a in pair)
              for pair in state_of(tokens)]
    prefixes.store(tokens, padded, layer_types=TYPES)
    assert_same(prefixes.load(prefixes.match(tokens + [1])), tokens)


def test_the_chain_ends_with_a_reason(prefixes, cache):
    tokens = list(range(64))
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES)
    match = prefixes.match(tokens)
    key = match.blocks[2][0]
    with pytest.raises(kvkeep.FailedPrecondition, match="leased by a matched prompt"):
        cache.delete(key)
    assert cache.delete(key, force=True)
    prefix = prefixes.load(match)
    assert (prefix.tokens, prefix.reason) == (32, "deleted")
    assert prefixes.match(tokens).reason == "deleted"
    assert "(tokens 32 to 47): deleted by a caller" in prefixes.why(tokens)


@pytest.mark.proves("RUL-41")
@pytest.mark.parametrize("end", ["release", "collect", "with"])
def test_a_match_holds_its_blocks_until_it_ends(prefixes, cache, end):
    tokens = list(range(32))
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES)
    match = prefixes.match(tokens)
    key = match.blocks[0][0]
    with pytest.raises(kvkeep.FailedPrecondition):
        cache.delete(key)
    if end == "release":
        match.release()
    elif end == "with":
        with match:
            pass
    else:
        del match
        gc.collect()
    assert cache.delete(key)


def test_tenants_share_nothing(prefixes):
    tokens = list(range(32))
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES, salt="a")
    assert prefixes.match(tokens, salt="a").tokens == 31
    assert prefixes.match(tokens, salt="b").tokens == 0
    assert prefixes.match(tokens).tokens == 0


def test_extras_begin_with_the_block_that_they_reach(prefixes):
    tokens = list(range(64))
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES, extras=[(20, ["image a"])])
    assert prefixes.match(tokens, extras=[(20, ["image a"])]).tokens == 63
    assert prefixes.match(tokens, extras=[(20, [b"image b"])]).tokens == 16


def test_a_state_that_cannot_be_cut_is_in_the_last_block(cache):
    prefixes = kvkeep.PrefixCache(cache, block_size=BLOCK, partial_tails="all")
    tokens = list(range(40))
    window = (numpy.ones((1, 2, 8, 4), numpy.float16), numpy.zeros((1, 2, 8, 4), numpy.float16))
    types = ["KVCache", "RotatingKVCache"]
    meta = [[], ["0", "8", "40", "8"]]
    prefixes.store(tokens, [state_of(tokens)[0], window], layer_types=types, meta_states=meta)
    prefix = prefixes.load(prefixes.match(tokens + [1]))
    assert prefix.tokens == 40
    keys, _ = prefix.blocks[-1].layers[1]
    numpy.testing.assert_array_equal(numpy.asarray(keys), window[0])
    assert prefix.blocks[-1].meta_states[1] == ["0", "8", "40", "8"]
    assert prefixes.load(prefixes.match(tokens[:38])).tokens == 0
    snapshot = (32, [state_of(tokens)[0], window], meta)
    other = tokens[:33] + [99] * 10
    prefixes.store(other, [state_of(other)[0], window], layer_types=types, snapshots=[snapshot])
    assert prefixes.load(prefixes.match(tokens[:38])).tokens == 32


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(tokens=[-1]), r"tokens\[0\]"),
        (dict(tokens=[2**32]), r"tokens\[0\]"),
        (dict(layer_types=["KVCache"]), "layers: 2, but layer_types names 1"),
        (dict(first_token=99), "first_token"),
        (dict(meta_states=[[]]), "meta_states: 1 for 2 layers"),
        (dict(snapshots=[(17, [], None)]), r"snapshots\[0\]"),
    ],
)
def test_arguments_that_cannot_be_are_named(prefixes, arguments, message):
    given = dict(tokens=list(range(32)), layers=state_of(range(32)), layer_types=TYPES)
    given.update(arguments)
    with pytest.raises(ValueError, match=message):
        prefixes.store(given.pop("tokens"), given.pop("layers"), **given)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(block_size=0), "block_size"),
        (dict(partial_tails="some"), "partial_tails"),
        (dict(recipe="sha"), "recipe"),
        (dict(max_blocks=0), "max_blocks"),
        (dict(lease=0), "lease"),
        (dict(recipe="omlx-1", fields={"adapter": "a"}), "adapter"),
    ],
)
def test_options_that_cannot_be_are_named(cache, options, message):
    with pytest.raises(ValueError, match=message):
        kvkeep.PrefixCache(cache, **{"block_size": BLOCK, **options})


def test_a_buffer_of_another_size_is_refused(prefixes):
    tokens = list(range(17))
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES)
    joined = prefixes.load(prefixes.match(tokens + [1])).joined(0)[0]
    assert (joined.path, joined.dtype, joined.shape) == ((0,), "F32", (1, 2, 17, 8))
    with pytest.raises(ValueError, match="buffer: has 4 bytes"):
        joined.copy_into(bytearray(4))


def test_it_counts(prefixes):
    tokens = list(range(32))
    prefixes.match(tokens)
    prefixes.store(tokens, state_of(tokens), layer_types=TYPES)
    prefixes.load(prefixes.match(tokens))
    stats = prefixes.stats()
    assert stats["lookups"] == 2 and stats["hits"] == 1
    assert stats["tokens_matched"] == stats["tokens_loaded"] == 31
    assert stats["pool"]["max_blocks"] == 100_000 and stats["pool"]["held_blocks"] == 0


def test_after_a_close_it_says_closed(prefixes, cache):
    cache.close()
    with pytest.raises(kvkeep.Error):
        prefixes.match(list(range(32)))
