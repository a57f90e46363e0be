"""kvkeep.omlx: every dtype and every kind of layer state, in oMLX's form, from RAM and from disk."""

from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import pytest

MSE = namedtuple("TurboQuantMSEState", "norms indices")
PROD = namedtuple("TurboQuantProdState", "norms mse_indices residual_norms qjl_signs")
KEY = bytes(range(32))
DTYPES = (
    "float32 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_".split()
)


def kinds(mx):
    """name: (state, layer type, what a load gives where that differs)."""
    f = mx.arange(16, dtype=mx.float32).reshape(1, 1, 4, 4)
    b = f.astype(mx.bfloat16)
    empty = mx.zeros((1, 1, 4, 0), mx.bfloat16)
    norms, packed = mx.ones((1, 2, 4)), mx.ones((1, 2, 4, 1), mx.uint32)
    mse, prod = MSE(norms, packed), PROD(norms, packed, norms, packed)
    inner = ("__nstate__", "Inner", [b, None])
    pair_with_class = ("__nstate__", "ArraysCache", [f, b])
    return {
        "pair": ((f, b), "KVCache", None),
        "pair as a list": ([f, b], "KVCache", (f, b)),
        "pair with a missing member": ((f, None), "KVCache", None),
        "pair with nothing in it": ((f, empty), "KVCache", None),
        "placeholder": ((mx.zeros((1,)), mx.zeros((1,))), "CacheList", None),
        "scalars": ((mx.array(1.5), mx.array(7)), "ArraysCache", None),
        "two named elements": (pair_with_class, "ArraysCache", (f, b)),
        "one element": (("__nstate__", "ArraysCache", [f]), "ArraysCache", None),
        "no element": (("__nstate__", "ArraysCache", []), "ArraysCache", None),
        "no class": (("__nstate__", None, [f, b, f]), "PoolingCache", ("__nstate__", "PoolingCache", [f, b, f])),
        "nested": (("__nstate__", "Pooling", [f, None, (b, (f, empty)), inner]), "Pooling", None),
        "two nested elements": (("__nstate__", "Pooling", [(f, b), inner]), "Pooling", None),
        "cache list": (("__cache_list__", [(f, b), (f, empty)]), "CacheList", [(f, b), (f, empty)]),
        "cache list as loaded": ([(f, b), inner[:2] + ([f],)], "CacheList", None),
        "cache list of named states": (
            ("__cache_list__", [pair_with_class, inner[:2] + ([f, b, f],)]),
            "CacheList",
            [(f, b), inner[:2] + ([f, b, f],)],
        ),
        "turboquant": (("__turboquant_v2__", (prod, mse)), "TurboQuantKVCache", None),
        "turboquant, older marker": (
            ("__turboquant__", (mse, mse)),
            "TurboQuantKVCache",
            ("__turboquant_v2__", (mse, mse)),
        ),
    }  # fmt: skip


def names_of_kinds():
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    return list(kinds(mx))


@pytest.fixture
def same(mx):
    import omlx_states

    return omlx_states.same


def save_one(manager, state, layer_type):
    return manager.save_block(KEY, [state], 4, "m", [layer_type], [()])


@pytest.mark.proves("STATE-02", "STATE-03", "STATE-04", "STATE-05", "STATE-08")
@pytest.mark.parametrize("hot_cache_max_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", names_of_kinds())
def test_every_kind_of_state(mx, same, open_manager, name, hot_cache_max_bytes):
    state, layer_type, loaded = kinds(mx)[name]
    manager = open_manager(hot_cache_max_bytes=hot_cache_max_bytes)
    assert save_one(manager, state, layer_type)
    assert same(manager.load_block(KEY), [loaded or state]), "from RAM"
    manager.close()
    again = open_manager()
    assert same(again.load_block(KEY), [loaded or state]), "from disk"
    assert again.get_stats().load_hits_disk == 1


@pytest.mark.proves("STATE-01")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(mx, same, open_manager, dtype):
    array = mx.random.randint(0, 2, (1, 2, 5, 3)).astype(getattr(mx, dtype))
    manager = open_manager()
    assert save_one(manager, (array, array[:, :, 1:4]), "KVCache")
    manager.close()
    assert same(open_manager().load_block(KEY), [(array, array[:, :, 1:4])])


def test_bits_that_are_no_number_survive(mx, open_manager):
    bits = mx.array([0x7FC1, 0xFF80, 0x8000, 0x0001], mx.uint16)
    manager = open_manager()
    assert save_one(manager, (bits.view(mx.bfloat16), bits.view(mx.float16)), "KVCache")
    keys, values = manager.load_block(KEY)[0]
    assert (keys.dtype, values.dtype) == (mx.bfloat16, mx.float16)
    assert keys.view(mx.uint16).tolist() == values.view(mx.uint16).tolist() == bits.tolist()


@pytest.mark.proves("SAVE-14")
def test_what_was_saved_does_not_change_with_the_callers_array(mx, open_manager):
    array = mx.zeros((1, 1, 4, 4))
    manager = open_manager()
    save_one(manager, (array, array), "KVCache")
    array += 1
    assert mx.array_equal(manager.load_block(KEY)[0][0], mx.zeros((1, 1, 4, 4)))


@pytest.mark.proves("ENC-05")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_lazy_slices_are_computed(mx, same, open_manager, dtype):
    whole = mx.arange(2 * 16 * 4).reshape(1, 2, 16, 4).astype(getattr(mx, dtype))
    part = whole[:, :, 3:11, :]
    manager = open_manager()
    assert save_one(manager, (part, part * 2), "KVCache")
    assert same(manager.load_block(KEY), [(whole[:, :, 3:11, :], whole[:, :, 3:11, :] * 2)])


def test_an_array_that_cannot_be_computed_is_refused_with_the_cause(mx, open_manager, caplog):
    with ThreadPoolExecutor(1) as pool:
        lazy = pool.submit(lambda: mx.ones((1, 1, 4, 4)) + 1).result()  # Of a stream that has ended.
    assert save_one(open_manager(), (lazy, lazy), "KVCache") is False
    assert "does not lend its memory" in caplog.text and "stream" in caplog.text.lower()


@pytest.mark.proves("SAVE-23", "SAVE-24", "DEF-74", "TQ-13")
@pytest.mark.parametrize(
    "state",
    [
        lambda a: "text",
        lambda a: a,
        lambda a: (a,),
        lambda a: (a, a, a),
        lambda a: ("__unknown__", a),
        lambda a: (a, (a, a)),
        lambda a: (a, "text"),
        lambda a: (a, a.astype(a.dtype) * 1j),
        lambda a: ("__nstate__", "X", a[0]),
        lambda a: ("__nstate__", "X", [object()]),
        lambda a: ("__nstate__", "X"),
        lambda a: ("__cache_list__", [a]),
        lambda a: ("__turboquant_v2__", (MSE(a, None), MSE(a, a))),
        lambda a: ("__turboquant_v2__", (MSE(a, (a, a)), MSE(a, a))),
        lambda a: ("__turboquant_v2__", (namedtuple("Unknown", "x")(a), MSE(a, a))),
    ],
)
def test_what_cannot_be_stored_is_refused_and_counted(mx, open_manager, state):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    assert save_one(manager, state(mx.ones((1, 1, 4, 4))), "KVCache") is False
    assert not manager.has_block(KEY) and manager.size == 0
    stats = manager.get_stats()
    assert (stats.errors, stats.saves) == (1, 0) and manager.get_stats_dict()["errors"] == 1


def test_records_have_the_engines_own_class(mx, open_manager, monkeypatch):
    import sys
    import types

    from kvkeep.omlx import turboquant

    engine = types.ModuleType("mlx_vlm.turboquant")
    engine.TurboQuantMSEState = namedtuple("TurboQuantMSEState", "norms indices")
    monkeypatch.setitem(sys.modules, "mlx_vlm", types.ModuleType("mlx_vlm"))
    monkeypatch.setitem(sys.modules, "mlx_vlm.turboquant", engine)
    monkeypatch.setattr(turboquant, "_classes", {})
    norms, packed = mx.ones((1, 2, 4)), mx.ones((1, 2, 4, 1), mx.uint32)
    manager = open_manager()
    assert save_one(manager, ("__turboquant_v2__", (MSE(norms, packed),) * 2), "TurboQuantKVCache")
    [(marker, (key, value))] = manager.load_block(KEY)
    assert marker == "__turboquant_v2__"
    assert isinstance(key, engine.TurboQuantMSEState) and isinstance(value, type(key))
    assert mx.array_equal(value.indices, packed)
