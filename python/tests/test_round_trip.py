"""Every dtype and every kind of layer state, saved here and read in a new process."""

import ml_dtypes
import numpy as np
import pytest

import contents
import kvkeep

READ = """
import json, sys
import contents, kvkeep
path, model, *keys = sys.argv[1:]
with kvkeep.BlockCache(path, max_size="1GB", model_name=model) as cache:
    out = []
    for block in cache.load_each([bytes.fromhex(key) for key in keys]):
        out.append(block and {
            "contents": contents.of_layers(block.layers), "source": block.source,
            "token_count": block.token_count, "model_name": block.model_name,
            "layer_types": block.layer_types, "meta_states": block.meta_states,
            "parent": block.parent and block.parent.hex(), "block_size": block.block_size})
    print(json.dumps(out))
"""

DTYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "BF16": ml_dtypes.bfloat16,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "BOOL": np.bool_,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


def random_array(dtype, shape, seed=1):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    width = np.dtype(dtype).itemsize
    return rng.integers(0, 256, (*shape, width), dtype=np.uint8).view(dtype).reshape(shape)


def expected_tensor(at, dtype, array):
    import hashlib

    digest = hashlib.sha256(array.tobytes()).hexdigest()
    return {"at": at, "dtype": dtype, "shape": list(array.shape), "sha256": digest}


@pytest.mark.proves("RUL-22", "STATE-01")
def test_every_dtype_comes_back_in_a_new_process(open_cache, tmp_path, in_new_process):
    arrays = {name: random_array(dtype, (2, 3, 5)) for name, dtype in DTYPES.items()}
    with open_cache(model_name="m") as cache:
        for name, array in arrays.items():
            saved = cache.save(name.encode(), [(array, array[:1])], token_count=4)
            assert saved and saved.outcome == "stored"
    keys = [name.encode().hex() for name in arrays]
    blocks = in_new_process(READ, tmp_path / "store", "m", *keys)
    for (name, array), block in zip(arrays.items(), blocks):
        assert block["contents"] == [
            {"at": "0", "tuple": 2},
            expected_tensor("0.0", name, array),
            expected_tensor("0.1", name, array[:1]),
        ]
        assert block["source"] == "disk"


def make_kinds():
    f = random_array(np.float32, (2, 4))
    i = random_array(np.int32, (3,))
    empty = np.zeros((1, 1, 64, 0), np.float16)
    scalar = np.float32(7).reshape(())
    nstate = kvkeep.NState
    return {
        "pair": [(f, i), [i, f]],
        "named pair": [nstate([f, i], "ArraysCache")],
        "no elements": [nstate([], "Empty")],
        "one element": [nstate([f])],
        "scalar and empty": [nstate([scalar, empty, f], "C")],
        "nulls": [nstate([None, f, None], "C"), (None, f)],
        "nested": [nstate([f, (i, None, [f, nstate([i], "Inner")]), nstate([], "Inner")], "Outer")],
        "cache list": [kvkeep.CacheList([(f, empty), nstate([f, i, f], "Sub")])],
        "turboquant": [
            kvkeep.TurboQuant(
                key=("TurboQuantProdState", dict.fromkeys(
                    ["norms", "mse_indices", "residual_norms", "qjl_signs"], f)),
                value=("TurboQuantMSEState", {"norms": f, "indices": i}),
            )
        ],
    }  # fmt: skip


TYPES = {"cache list": ["CacheList"], "turboquant": ["TurboQuantKVCache"]}


@pytest.mark.proves("STATE-02", "STATE-03", "STATE-04", "STATE-05", "STATE-06")
def test_every_kind_of_state_comes_back_in_a_new_process(open_cache, tmp_path, in_new_process):
    kinds = make_kinds()
    pending = {}
    for name, layers in kinds.items():
        with open_cache(tmp_path / name, model_name="m") as cache:
            saved = cache.save(b"key", layers, token_count=4, layer_types=TYPES.get(name))
            assert saved, (name, saved)
            pending[name] = contents.of_layers(cache.load(b"key").layers)
    for name in kinds:
        (block,) = in_new_process(READ, tmp_path / name, "m", b"key".hex())
        assert block is not None, name
        assert block["contents"] == pending[name], name
        with open_cache(tmp_path / name, model_name="m") as cache:
            again = cache.load(b"key")
            assert cache.save(b"copy", again.layers, token_count=4, layer_types=again.layer_types)
            assert contents.of_layers(cache.load(b"copy").layers) == block["contents"], name


def test_structure_of_a_loaded_block(cache):
    nstate = kvkeep.NState
    f = np.zeros((1, 2), np.float32)
    layers = [(f, None), nstate([f, (f, nstate([None], "I"))], "O"), kvkeep.CacheList([(f, f)])]
    assert cache.save(b"k", layers, token_count=1, layer_types=["A", "B", "CacheList"])
    pair, outer, subs = cache.load(b"k").layers
    assert isinstance(pair, tuple) and isinstance(pair[0], kvkeep.Tensor) and pair[1] is None
    assert isinstance(outer, nstate) and outer.class_name == "O"
    assert isinstance(outer.elements[1], tuple) and outer.elements[1][1] == nstate((None,), "I")
    assert isinstance(subs, kvkeep.CacheList) and isinstance(subs.subs[0], tuple)


def test_everything_about_a_block_comes_back(open_cache, tmp_path, in_new_process):
    parent = bytes(range(32))
    meta = [["0", 1024, None, True, 2.5, [[1], "é"]], []]
    with open_cache(model_name="org/モデル", block_size=16) as cache:
        f = np.zeros(4, np.float32)
        cache.save(
            b"k",
            [(f, f), (f, f)],
            token_count=7,
            layer_types=["KVCache", "KVCache"],
            meta_states=meta,
            parent=parent,
        )
    (block,) = in_new_process(READ, tmp_path / "store", "org/モデル", b"k".hex())
    block.pop("contents")
    assert block == {
        "source": "disk",
        "token_count": 7,
        "model_name": "org/モデル",
        "layer_types": ["KVCache", "KVCache"],
        "meta_states": meta,
        "parent": parent.hex(),
        "block_size": 16,
    }


@pytest.mark.proves("RUL-44")
@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 118, 119])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_keys_of_every_length(open_cache, tmp_path, size, kind):
    key = bytes(range(size))
    with open_cache() as cache:
        assert cache.save(kind(key), [(np.ones(3, np.int8),) * 2], token_count=1)
        assert kind(key) in cache
    with open_cache() as cache:
        assert cache.load(kind(key)).source == "disk"
