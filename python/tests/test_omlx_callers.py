"""kvkeep.omlx: the calls that oMLX's prefix cache and scheduler make, in their order."""

import hashlib
import json

import pytest

BLOCK = 16
MODEL = "/models/org/m"
TYPES = ["KVCache", "RotatingKVCache", "ArraysCache", "CacheList"]
LIST_META = (["KVCache", "RotatingKVCache"], [("16",), ("0", "1024", "16", "16")])


def chain(tokens):
    """Keys of the full blocks, by oMLX's recipe."""
    keys, parent = [], b"omlx-root"
    for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
        text = str(tuple(tokens[start : start + BLOCK])).encode()
        parent = hashlib.sha256(MODEL.encode() + parent + text).digest()
        keys.append(parent)
    return keys


class Model:
    """A hybrid model's blocks: only the last one of a store holds the state of its stateful layers."""

    def __init__(self, mx):
        self.mx = mx

    def array(self, seed, *shape):
        return (self.mx.arange(1, 1 + self.mx.array(shape).prod().item()) + seed).reshape(shape)

    def placeholder(self):
        return (self.mx.zeros((1,)), self.mx.zeros((1,)))

    def rotating(self, seed):
        return (self.array(seed, 1, 2, BLOCK, 4), self.array(seed + 1, 1, 2, BLOCK, 4))

    def block(self, seed, last):
        pair = tuple(self.array(seed + i, 1, 2, BLOCK, 4).astype(self.mx.bfloat16) for i in (0, 1))
        rotating = self.rotating(seed) if last else self.placeholder()
        arrays = ("__nstate__", "ArraysCache", [self.array(seed, 1, 3, 4)] * 3)
        subs = ("__cache_list__", [self.rotating(seed + 2), self.rotating(seed + 3)])
        return [
            pair,
            rotating,
            arrays if last else self.placeholder(),
            subs if last else self.placeholder(),
        ]

    def metas(self, tokens):
        return [(str(tokens),), ("0", "1024", str(tokens), str(BLOCK)), "", LIST_META]


@pytest.fixture
def model(mx):
    return Model(mx)


@pytest.fixture
def same(mx):
    import omlx_states

    return omlx_states.same


@pytest.fixture
def open_server(open_manager):
    """A manager as the scheduler opens it."""

    def open_(**options):
        return open_manager(
            hot_cache_max_bytes=4 << 20,
            expected_model_name=MODEL,
            expected_num_layers=len(TYPES),
            expected_block_size=BLOCK,
            expected_block_size_tokens=BLOCK,
            expected_kv_bytes_per_token=1024,
            **options,
        )

    def again():
        open_manager.close_all()
        return open_()

    open_.again = again
    return open_


def store(manager, model, keys, **options):
    """As store_cache() does it: up to the first block that is refused."""
    for number, key in enumerate(keys):
        last = number == len(keys) - 1
        saved = manager.save_block(
            block_hash=key,
            cache_data=model.block(number, last),
            token_count=BLOCK,
            model_name=MODEL,
            layer_cache_types=TYPES,
            layer_meta_states=model.metas((number + 1) * BLOCK),
            **options,
        )
        if not saved:
            return number
    return len(keys)


def load(manager, keys, expected_layers=len(TYPES), **options):
    """As reconstruct_cache() does it: forgets what does not fit, and stops there."""
    blocks = []
    for key in keys:
        data, facts = manager.load_block_with_metadata(key, **options)
        if data is None:
            break
        types = manager._expected_layer_cache_types or facts["layer_cache_types"]
        fits = (
            facts["model_name"] == MODEL
            and facts["num_layers"] == expected_layers
            and facts["block_size"] == BLOCK
            and facts["layer_cache_types"] == types
        )
        if not fits:
            assert manager.forget_block(key)
            break
        blocks.append((data, facts))
    return blocks


def loaded_form(state):
    return state[1] if isinstance(state, tuple) and state[0] == "__cache_list__" else state


def expected_block(model, number, last):
    return [loaded_form(state) for state in model.block(number, last)]


@pytest.fixture
def keys():
    return chain(list(range(5 * BLOCK + 3)))


def test_a_prompt_is_found_again_after_a_restart(open_server, model, same, keys):
    assert store(open_server(), model, keys) == len(keys) == 5
    manager = open_server.again()
    assert manager._expected_layer_cache_types is None
    assert [manager.has_block(key) for key in keys] == [True] * 5
    assert not manager.has_block(chain([9] * BLOCK)[0])
    assert manager.preload_matched_blocks(keys) == 5
    blocks = load(manager, keys)
    assert len(blocks) == 5 and manager.get_stats().hot_cache_hits == 5
    for number, (data, facts) in enumerate(blocks):
        assert same(data, expected_block(model, number, number == 4)), number
        assert facts["layer_meta_states"][1] == ("0", "1024", str((number + 1) * BLOCK), str(BLOCK))
        assert facts["layer_meta_states"][2] == ()
    names, metas = blocks[-1][1]["layer_meta_states"][3]
    assert names == LIST_META[0] and [tuple(meta) for meta in metas] == LIST_META[1]


def test_the_previous_tip_is_stripped(open_server, model, same, keys):
    manager = open_server()
    store(manager, model, keys[:3])
    store(manager, model, keys)
    tip = keys[2]
    data, facts = manager.load_block_with_metadata(tip)
    assert not same(data[1], model.placeholder())
    stripped = [model.placeholder() if t == "RotatingKVCache" else s for s, t in zip(data, TYPES)]
    assert manager.forget_block(tip) and not manager.has_block(tip)
    assert manager.save_block(
        block_hash=tip,
        cache_data=stripped,  # A cache list as it was loaded.
        token_count=facts["token_count"],
        model_name=facts["model_name"],
        layer_cache_types=facts["layer_cache_types"],
        layer_meta_states=facts["layer_meta_states"],
    )
    for reopen in (lambda: manager, open_server.again):
        again, _ = reopen().load_block_with_metadata(tip)
        assert same(again, stripped) and isinstance(again[3], list)


@pytest.mark.proves("LOAD-12")
def test_under_memory_pressure_nothing_is_kept_in_ram(open_server, model, keys):
    manager = open_server()
    assert store(manager, model, keys, hot_cache_write_back=False) == 5
    assert manager.get_stats().hot_cache_entries == 0
    manager = open_server.again()
    assert len(load(manager, keys, promote_to_hot_cache=False)) == 5
    assert manager.get_stats().hot_cache_entries == 0
    assert len(load(manager, keys)) == 5 and manager.get_stats().hot_cache_entries == 5


@pytest.mark.proves("HOT-10")
def test_pressure_shrinks_the_hot_tier_but_for_what_is_in_use(open_server, model, keys):
    manager = open_server()
    store(manager, model, keys)
    held = manager.get_stats().hot_cache_size_bytes
    freed = manager.shrink_hot_cache_to(0, protected_hashes={keys[0], keys[1]})
    stats = manager.get_stats()
    assert (stats.hot_cache_entries, stats.hot_cache_evictions) == (2, 3)
    assert 0 < freed == held - stats.hot_cache_size_bytes < held
    assert len(load(manager, keys)) == 5


def test_what_another_program_left_is_forgotten_and_stays_on_disk(open_manager, open_server, model, keys):
    """A manager without expectations, as a program that checks by itself opens it."""
    store(open_server(), model, keys)
    open_manager.close_all()
    manager = open_manager()
    assert load(manager, keys, expected_layers=7) == []
    assert not manager.has_block(keys[0]) and manager.has_block(keys[1])
    manager.close()
    assert all(manager._get_file_path(key).exists() for key in keys)


@pytest.mark.proves("SIG-04", "SIG-05", "SIG-06")
def test_the_first_store_says_what_the_layers_are(open_server, model, keys):
    manager = open_server()
    assert manager._expected_layer_cache_types is None
    assert not manager.adopt_layer_signature_if_unset(None)
    assert not manager.adopt_layer_signature_if_unset([])
    store(manager, model, keys[:1])
    assert manager._expected_layer_cache_types == TYPES
    assert not manager.adopt_layer_signature_if_unset(["KVCache"] * 4)


@pytest.mark.proves("SIG-08", "SIG-11", "SWEEP-08", "DEF-53")
def test_a_change_of_layers_sweeps_what_does_not_fit(open_server, model, keys):
    manager = open_server()
    store(manager, model, keys)
    manager = open_server.again()
    other = ["KVCache", "RotatingKVCache", "ArraysCache", "KVCache"]
    assert manager.set_expected_layer_signature(other)
    assert not manager.set_expected_layer_signature(None)
    assert not manager.set_expected_layer_signature([], turboquant_kv_bits=4)
    assert manager.invalidate_stale_layer_signature() == 5
    assert manager.invalidate_stale_layer_signature() == 0
    assert load(manager, keys) == [] and manager.size == 0
    assert manager.set_expected_layer_signature(TYPES)  # They are served again.
    assert len(load(manager, keys)) == 5


@pytest.mark.proves("TQ-07", "TQ-08")
def test_a_change_of_depth_sweeps_blocks_of_the_other(open_manager, mx):
    from test_omlx_round_trip import MSE

    types = ["TurboQuantKVCache", "KVCache"]
    manager = open_manager(
        expected_model_name="m", expected_num_layers=2, expected_layer_cache_types=types
    )
    assert manager.set_expected_layer_signature(types, turboquant_kv_bits=6)
    assert not manager.set_expected_layer_signature(types, turboquant_kv_bits=6.0)
    record = MSE(mx.ones((1, 2, 8)), mx.ones((1, 2, 8, 1), mx.uint32))
    plain = mx.ones((1, 2, 8, 4))
    data = [("__turboquant_v2__", (record, record)), (plain, plain)]
    assert manager.save_block(b"k", data, 8, "m", types, [(8, 6.0, 0), (8,)])
    _, facts = manager.load_block_with_metadata(b"k")
    assert json.loads(facts["cache_signature"])["turboquant_kv_bits"] == 6.0
    assert not manager.save_block(b"l", data, 8, "m", types, [(8, 4.0, 0), (8,)])
    assert manager.set_expected_layer_signature(types, turboquant_kv_bits=4)
    assert manager.invalidate_stale_layer_signature() == 1 and not manager.has_block(b"k")
