"""The files are safetensors files: other readers see the same tensors and metadata."""

import pathlib

import ml_dtypes
import numpy as np
import pytest

import kvkeep


@pytest.fixture
def file(open_cache, tmp_path):
    k = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with open_cache(model_name="m") as cache:
        cache.save(
            bytes(range(32)),
            [(k, k.astype(np.float16)), (k.astype(ml_dtypes.bfloat16), k.astype(np.int32))],
            token_count=3,
            layer_types=["KVCache", "KVCache"],
        )
    (path,) = pathlib.Path(tmp_path / "store").glob("0/*.safetensors")
    return path


def test_the_safetensors_package_reads_them(file):
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
    with safetensors.safe_open(file, framework="numpy") as reader:
        metadata = reader.metadata()
        names = sorted(reader.keys())
        first = reader.get_tensor("layer_0_state_0")
    assert names == [f"layer_{i}_state_{j}" for i in (0, 1) for j in (0, 1)]
    assert metadata["block_hash"] == bytes(range(32)).hex()
    assert metadata["model_name"] == "m" and metadata["token_count"] == "3"
    assert (first == np.arange(24, dtype=np.float32).reshape(2, 3, 4)).all()


def test_mlx_reads_them(file):
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    arrays, metadata = mx.load(str(file), return_metadata=True)
    expected = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)
    for name, dtype in [
        ("layer_0_state_0", mx.float32),
        ("layer_0_state_1", mx.float16),
        ("layer_1_state_0", mx.bfloat16),
        ("layer_1_state_1", mx.int32),
    ]:
        assert arrays[name].dtype == dtype
        assert mx.array_equal(arrays[name].astype(mx.float32), expected)
    assert metadata["omlx_cache_format_version"] == "3"


def test_mlx_arrays_are_made_from_tensors(open_cache):
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    cache = open_cache()
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32, np.bool_):
        source = np.arange(6).reshape(2, 3).astype(dtype)
        key = np.dtype(dtype).name.encode()
        cache.save(key, [(source, source)], token_count=1)
        keys, _ = cache.load(key).layers[0]
        array = mx.array(keys)
        assert array.shape == (2, 3)
        assert array.astype(mx.float32).tolist() == source.astype(np.float32).tolist()


def test_numpy_module_is_not_needed_to_import(in_new_process):
    source = "import sys, kvkeep, json; print(json.dumps('numpy' in sys.modules))"
    assert in_new_process(source) is False
    assert kvkeep.__version__
