"""PromptCache: every kind of mlx-lm's caches goes in, and comes out as it was, or not at all."""

import pathlib

import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is missing (run: tools/install-deps mlx demo)")
pytest.importorskip("mlx_lm", reason="mlx-lm is missing (run: tools/install-deps mlx demo)")

import kvkeep
from kvkeep.mlx import PromptCache, _layers
from kvkeep.mlx.prompt_cache import STATE_FORMAT
from mlx_lm.models import cache as mlx_caches

from mlx_caches import (
    CUT, EVERY, WHOLE, WINDOW, append, arrays, assert_same, chunked, kv, listed, made, rotating)

BLOCK = 16
TOKENS = list(range(100, 200))
FULL = 96  # Tokens in the full blocks of TOKENS.
NEXT = [7, 8, 9]


@pytest.fixture
def open_prompts(open_cache):
    """Opens the store anew, as a new process would, and prompts on it."""

    def open_(**options):
        open_cache.close_all()
        return PromptCache(open_cache(), block_size=BLOCK, **options)

    return open_


@pytest.fixture
def prompts(open_prompts):
    return open_prompts()


@pytest.mark.parametrize("name", EVERY)
def test_what_was_stored_is_fetched_with_all_its_tokens(prompts, name):
    given = made(name, len(TOKENS))
    report = prompts.store(TOKENS, given)
    found, covered = prompts.fetch(TOKENS + NEXT)
    assert report.tokens == covered == len(TOKENS)
    assert_same(given, found, covered)


@pytest.mark.parametrize("name", EVERY)
def test_after_a_restart_full_blocks_are_there_and_states_that_cannot_be_cut(open_prompts, name):
    given = made(name, len(TOKENS))
    open_prompts().store(TOKENS, given)
    found, covered = open_prompts().fetch(TOKENS + NEXT)
    assert covered == (len(TOKENS) if name in WHOLE else FULL)
    assert_same(given, found, covered)


@pytest.mark.parametrize("tails, at_once, after_a_restart", [
    ("none", FULL, FULL), ("hot", 100, FULL), ("all", 100, 100), (None, 100, FULL)])
def test_the_rest_of_a_prompt_is_kept_as_asked(open_prompts, tails, at_once, after_a_restart):
    prompts = open_prompts(partial_tails=tails)
    prompts.store(TOKENS, made("bfloat16", len(TOKENS)))
    assert prompts.fetch(TOKENS + NEXT)[1] == at_once
    assert open_prompts(partial_tails=tails).fetch(TOKENS + NEXT)[1] == after_a_restart


@pytest.mark.parametrize("name", CUT)
def test_a_part_of_a_prompt_is_found(prompts, name):
    given = made(name, len(TOKENS))
    prompts.store(TOKENS, given)
    found, covered = prompts.fetch(TOKENS[: 2 * BLOCK + 3] + NEXT)
    assert covered == 2 * BLOCK
    assert_same(given, found, covered)


@pytest.mark.parametrize("name", ["window", "window that keeps", "chunk", "list of everything"])
def test_a_fetched_window_goes_on_as_the_stored_one(prompts, name):
    given = made(name, len(TOKENS))
    prompts.store(TOKENS, given)
    found, covered = prompts.fetch(TOKENS + NEXT)
    for step in (1, 5, 1, WINDOW + 3, 1):
        for caches in (given, found):
            mx.random.seed(step)
            _append_to_all(caches, step)
        covered += step
        assert_same(_without_arrays(given), _without_arrays(found), covered)


def _append_to_all(caches, tokens):
    for cache in caches:
        if isinstance(cache, mlx_caches.CacheList):
            _append_to_all(cache.caches, tokens)
        elif not isinstance(cache, mlx_caches.ArraysCache):
            append(cache, tokens, step=tokens)


def _without_arrays(caches):
    members = [member for cache in caches for member in getattr(cache, "caches", [cache])]
    return [member for member in members if not isinstance(member, mlx_caches.ArraysCache)]


def test_a_window_is_stored_in_the_order_of_its_tokens_and_no_longer_than_it_is(prompts):
    prompts.store(TOKENS, [rotating(100, step=100)])
    [found], _ = prompts.fetch(TOKENS + NEXT)
    assert found.keys.shape[2] == found.values.shape[2] == found._idx == WINDOW


@pytest.mark.parametrize("name", CUT)
def test_one_token_is_left_to_compute(prompts, name):
    given = made(name, len(TOKENS))
    prompts.store(TOKENS, given)
    found, covered = prompts.fetch(TOKENS)
    assert covered == len(TOKENS) - 1
    assert_same(given, found, covered)


@pytest.mark.parametrize("name", WHOLE)
def test_a_state_that_cannot_be_cut_is_not_taken_for_a_shorter_prompt(prompts, name):
    prompts.store(TOKENS, made(name, len(TOKENS)))
    assert prompts.fetch(TOKENS) == (None, 0)
    assert prompts.fetch(TOKENS[:50]) == (None, 0)


def test_a_state_that_cannot_be_cut_is_found_where_it_was_stored(prompts):
    for end in (40, 64, 100):
        prompts.store(TOKENS[:end], made("window", end, seed=end))
    for end in (40, 64):
        found, covered = prompts.fetch(TOKENS[: end + 5] + NEXT)
        assert covered == end
        assert found[1].offset == end


def test_a_fetched_prompt_cache_is_the_callers_own(prompts):
    prompts.store(TOKENS, made("bfloat16", len(TOKENS)))
    first, covered = prompts.fetch(TOKENS + NEXT)
    first[0].keys[..., 0, :] = 0
    append(first[0], 3)
    again, _ = prompts.fetch(TOKENS + NEXT)
    assert_same(made("bfloat16", len(TOKENS)), again, covered)


def test_the_stored_state_is_that_of_the_moment(prompts):
    given = made("bfloat16", len(TOKENS))
    prepared = prompts.prepare(TOKENS, given)
    for layer in given:
        layer.keys[..., :50, :] = 0
    prompts.store_prepared(prepared)
    assert_same(made("bfloat16", len(TOKENS)), *prompts.fetch(TOKENS + NEXT))


def test_prompts_of_other_fields_and_salts_are_not_found(open_prompts):
    open_prompts(fields={"model": "a"}, salt="mine").store(TOKENS, made("bfloat16", len(TOKENS)))
    assert open_prompts(fields={"model": "b"}, salt="mine").fetch(TOKENS) == (None, 0)
    assert open_prompts(fields={"model": "a"}, salt="yours").fetch(TOKENS) == (None, 0)
    assert open_prompts(fields={"model": "a"}, salt="mine").fetch(TOKENS)[1] == FULL


def test_a_prefix_that_is_not_longer_is_not_loaded(prompts):
    prompts.store(TOKENS, made("bfloat16", len(TOKENS)))
    assert prompts.fetch(TOKENS + NEXT, more_than=len(TOKENS)) == (None, 0)
    assert prompts.fetch(TOKENS + NEXT, more_than=len(TOKENS) - 1)[1] == len(TOKENS)


def test_a_flipped_byte_is_a_shorter_match(open_prompts, tmp_path):
    given = made("bfloat16", len(TOKENS))
    open_prompts().store(TOKENS, given)
    prompts = open_prompts()
    third = kvkeep.chain_keys(TOKENS, block_size=BLOCK, namespace={"state": STATE_FORMAT})[2]
    [path] = pathlib.Path(tmp_path).rglob(third.hex() + ".*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    found, covered = prompts.fetch(TOKENS + NEXT)
    assert covered == 2 * BLOCK
    assert_same(given, found, covered)


@pytest.mark.parametrize("offsets, covered", [
    ((100, 100), 100), ((100, 90), 90), ((90, 90), 90), ((110, 120), 100)])
def test_what_all_layers_have_computed_is_stored(prompts, offsets, covered):
    given = [kv(tokens) for tokens in offsets]
    assert prompts.store(TOKENS, given).tokens == covered
    assert_same(given, *prompts.fetch(TOKENS + NEXT))


def test_a_window_that_lost_no_row_is_cut(prompts):
    given = [kv(30), rotating(40)]
    assert prompts.store(TOKENS[:40], given).tokens == 30
    found, covered = prompts.fetch(TOKENS)
    assert covered == 30
    assert found[1].offset == found[1].keys.shape[2] == 30
    assert mx.array_equal(found[1].keys, given[1].keys[..., :30, :])


class OwnKVCache(mlx_caches.KVCache):
    """A model's own cache, which may hold more than its base."""


def two_sequences():
    cache = mlx_caches.KVCache()
    cache.update_and_fetch(mx.zeros((2, 1, 4, 64)), mx.zeros((2, 1, 4, 64)))
    return cache


def short_buffer():
    cache = kv(20)
    cache.offset = 300
    return cache


def short_window():
    cache = rotating(40)
    cache.keys = cache.keys[..., :20, :]
    cache._idx = 20
    return cache


@pytest.mark.parametrize("tokens, prompt_cache, message", [
    ([], [kv(4)], "tokens: there are none"),
    ([1, -1], [kv(2)], "tokens: -1"),
    ([1, 2**32], [kv(2)], "tokens: 1 … 4294967296"),
    (TOKENS, [], "prompt_cache: has no layers"),
    (TOKENS, [mlx_caches.KVCache()], "prompt_cache: a layer has computed no token"),
    (TOKENS, [kv(20), OwnKVCache()], "prompt_cache: layer 1 is a OwnKVCache"),
    (TOKENS, [kv(20), object()], "prompt_cache: layer 1 is a object"),
    (TOKENS[:4], [two_sequences()], "prompt_cache: layer 0 holds an array of shape"),
    (TOKENS, [short_buffer()], "prompt_cache: layer 0 holds"),
    (TOKENS[:40], [short_window()], "prompt_cache: layer 0 holds 20 rows after 40 tokens"),
    (TOKENS, [kv(90), rotating(100)], "prompt_cache: layer 1 holds a window after 100 tokens, not after 90"),
    (TOKENS, [kv(90), chunked(100)], "prompt_cache: layer 1 holds a chunk after 100 tokens, not after 90"),
    (TOKENS, [kv(90), kv(100), arrays(90)], "prompt_cache: has computed up to 100 tokens"),
    (TOKENS[:50], [kv(60), arrays(60)], "prompt_cache: has computed up to 60 tokens"),
    (TOKENS[:50], [listed(kv, arrays)(60)], "prompt_cache: has computed up to 60 tokens"),
])
def test_what_does_not_fit_is_refused_by_name(prompts, tokens, prompt_cache, message):
    with pytest.raises(kvkeep.InvalidArgument) as refusal:
        prompts.store(tokens, prompt_cache)
    assert str(refusal.value).startswith(message)
    assert prompts.fetch(TOKENS) == (None, 0)


@pytest.mark.parametrize("tokens, error", [
    ([1, -1], kvkeep.InvalidArgument), ([2**32], kvkeep.InvalidArgument), ([1.5], TypeError),
    (["a"], TypeError)])
def test_what_is_no_token_is_refused(prompts, tokens, error):
    with pytest.raises(error):
        prompts.fetch(tokens)


@pytest.mark.parametrize("tokens", [[], [100], TOKENS[:BLOCK], [1] * 40])
def test_prompts_without_a_stored_prefix_are_a_miss(prompts, tokens):
    prompts.store(TOKENS[:BLOCK], made("bfloat16", BLOCK))
    found, covered = prompts.fetch(tokens)
    assert covered < max(1, len(tokens))
    assert (found is None) == (covered == 0)


def test_a_missing_mlx_lm_is_named_with_what_to_type(in_new_process):
    said = in_new_process("""
import json, sys
sys.modules["mlx_lm"] = None
try:
    import kvkeep.mlx
except ImportError as error:
    print(json.dumps(str(error)))
""")
    assert said.startswith("kvkeep.mlx needs mlx-lm: ") and "pip install mlx-lm" in said


def test_arrays_of_tokens_are_taken(prompts):
    prompts.store(mx.array(TOKENS), made("bfloat16", len(TOKENS)))
    assert prompts.fetch(mx.array(TOKENS + NEXT))[1] == len(TOKENS)


@pytest.mark.parametrize("other", [2, 4])
def test_another_number_of_layers_is_refused_where_the_store_has_some(open_prompts, other):
    open_prompts().store(TOKENS[:50], [kv(50) for _ in range(3)])
    prompts = open_prompts()
    prompts.fetch(TOKENS)
    said = f"^prompt_cache: has {other} KVCache for layers, what is stored has 3 KVCache$"
    with pytest.raises(kvkeep.InvalidArgument, match=said):
        prompts.store(TOKENS, [kv(100) for _ in range(other)])


def test_blocks_of_different_classes_are_a_miss(open_prompts):
    open_prompts().store(TOKENS[:48], made("bfloat16", 48)[:1])
    open_prompts().store(TOKENS, made("concatenate", len(TOKENS)))
    assert open_prompts().fetch(TOKENS[:48] + NEXT)[1] == 48
    assert open_prompts().fetch(TOKENS) == (None, 0)


def test_a_window_that_contradicts_its_tokens_is_no_window():
    [window] = made("window in single steps", 100)
    parts = [window.keys, window.values]
    _layers.restored("RotatingKVCache", parts, [0, WINDOW, 100], 100)
    for meta in ([0, WINDOW, 100], [0, WINDOW + 1, 90], [0, WINDOW]):
        with pytest.raises(ValueError):
            _layers.restored("RotatingKVCache", parts, meta, 90)


@pytest.mark.parametrize("other", [2, 4])
def test_prompts_whose_blocks_have_different_layers_are_a_miss(open_prompts, other):
    open_prompts().store(TOKENS[:50], [kv(50) for _ in range(3)])
    open_prompts().store(TOKENS, [kv(100) for _ in range(other)])
    found, covered = open_prompts().fetch(TOKENS)
    assert covered <= 48 and (found is None or len(found) == 3)
