"""kvkeep.Tensor: what other libraries get, and that they get it read-only or as a copy."""

import gc
import hashlib
import io
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import kvkeep
from test_round_trip import DTYPES, random_array

NO_FORMAT = ("BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0")


def stored(cache, array, key=b"k"):
    assert cache.save(key, [kvkeep.NState([array])], token_count=1)
    (tensor,) = cache.load(key).layers[0].elements
    return tensor


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_reads_every_dtype_without_a_copy(cache, name):
    source = random_array(DTYPES[name], (2, 3, 4))
    tensor = stored(cache, source)
    array = np.asarray(tensor)
    assert array.dtype == source.dtype and array.shape == source.shape
    assert array.tobytes() == source.tobytes()
    assert not array.flags.writeable
    assert array.ctypes.data == np.frombuffer(tensor.raw, np.uint8).ctypes.data
    copy = np.array(tensor, copy=True)
    assert copy.flags.writeable and copy.tobytes() == source.tobytes()


def test_numpy_converts(cache):
    tensor = stored(cache, np.array([1, 2], ml_dtypes.bfloat16))
    assert np.asarray(tensor, np.float32).tolist() == [1.0, 2.0]
    assert tensor.__array__(np.float32).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError):
        tensor.__array__(np.float32, copy=False)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (5,), (1, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_shapes(cache, shape, dtype):
    source = np.ones(shape, dtype)
    tensor = stored(cache, source)
    assert tensor.shape == shape and np.asarray(tensor).shape == shape
    assert tensor.raw.nbytes == tensor.nbytes == source.nbytes


@pytest.mark.proves("RUL-49")
@pytest.mark.parametrize("name", DTYPES)
def test_buffers_are_typed_and_read_only(cache, name):
    source = random_array(DTYPES[name], (2, 3))
    tensor = stored(cache, source)
    assert tensor.raw.readonly and tensor.raw.format == "B" and tensor.raw.ndim == 1
    with pytest.raises(TypeError):
        tensor.raw[0] = 1
    if name in NO_FORMAT:
        with pytest.raises(BufferError, match="ml_dtypes"):
            memoryview(tensor)
    else:
        view = memoryview(tensor)
        assert view.readonly and view.shape == (2, 3) and view.tobytes() == source.tobytes()
        assert np.asarray(view).dtype == source.dtype
        with pytest.raises(TypeError, match="read-write"):
            io.BytesIO(bytes(64)).readinto(tensor)
    assert hashlib.sha256(tensor).digest() == hashlib.sha256(source.tobytes()).digest()


def capsule_name(capsule):
    return str(capsule).split('"')[1]


@pytest.mark.proves("RUL-49")
def test_dlpack_lends_read_only_or_copies(cache):
    tensor = stored(cache, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert tensor.__dlpack_device__() == (1, 0)
    for version, name in [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((2, 1), "dltensor_versioned"),
    ]:
        assert capsule_name(tensor.__dlpack__(max_version=version)) == name
    address = np.asarray(tensor).ctypes.data

    lent = np.from_dlpack(tensor)
    assert not lent.flags.writeable and lent.ctypes.data == address
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.flags.writeable and copied.ctypes.data != address


class Legacy:
    """Asks as a consumer from before DLPack 1.0 does."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **_):
        return self._tensor.__dlpack__()

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


@pytest.mark.proves("RUL-49")
def test_a_consumer_that_knows_no_read_only_tensors_gets_a_copy(cache):
    tensor = stored(cache, np.arange(6, dtype=np.float32))
    copied = np.from_dlpack(Legacy(tensor))
    assert copied.ctypes.data != np.asarray(tensor).ctypes.data
    assert copied.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    for wrong in ({"max_version": (1.5, 0)}, {"copy": 1}):
        with pytest.raises(TypeError):
            tensor.__dlpack__(**wrong)


def test_torch_gets_a_tensor_of_its_own(cache):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = stored(cache, np.arange(6, dtype=np.float32))
    own = torch.from_dlpack(Legacy(tensor))
    own += 1
    assert np.asarray(tensor).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.proves("RUL-67")
def test_tensors_outlive_their_cache(open_cache):
    source = random_array(np.float32, (64, 64))
    with open_cache() as cache:
        cache.save(b"k", [(source, source)], token_count=1)
    cache = open_cache()
    keys, values = cache.load(b"k").layers[0]
    array, raw, capsule = np.asarray(keys), values.raw, np.from_dlpack(values)
    cache.delete(b"k")
    cache.close()
    del cache, keys, values
    gc.collect()
    assert array.tobytes() == source.tobytes() == bytes(raw) == capsule.tobytes()


def test_capsules_that_nobody_takes_are_freed(open_cache):
    cache = open_cache(hot_size=0)
    tensor = stored(cache, np.zeros(1 << 16, np.float32))
    before = cache.stats()["ram_bytes"]
    capsules = [tensor.__dlpack__(max_version=(1, 0)) for _ in range(10)]
    cache.flush()
    del tensor, capsules
    gc.collect()
    assert cache.stats()["ram_bytes"] < before


def test_names_and_representation(cache):
    tensor = stored(cache, np.zeros((1, 8, 64), ml_dtypes.bfloat16))
    assert repr(tensor) == "kvkeep.Tensor(BF16, [1, 8, 64])"
    assert (tensor.dtype, tensor.nbytes) == ("BF16", 1024)
    with pytest.raises(TypeError):
        kvkeep.Tensor()
    with pytest.raises(AttributeError):
        tensor.shape = ()


WITHOUT = """
import sys, tempfile
sys.modules["ml_dtypes"] = None
import kvkeep
assert "numpy" not in sys.modules
import numpy as np
key, path = b"k", sys.argv[1]
with kvkeep.BlockCache(path, max_size="1GB") as cache:
    keys, values = cache.load(key).layers[0]
    assert np.asarray(values).dtype == np.float32
    try:
        np.asarray(keys)
    except TypeError as error:
        assert "BF16" in str(error) and "ml_dtypes" in str(error), error
    else:
        raise AssertionError("no error")
    assert bytes(keys.raw) == bytes(8)
"""


def test_without_ml_dtypes_the_error_names_it(open_cache, tmp_path):
    with open_cache() as cache:
        cache.save(b"k", [(np.zeros(4, ml_dtypes.bfloat16), np.zeros(4, np.float32))], token_count=1)
    done = subprocess.run([sys.executable, "-c", WITHOUT, tmp_path / "store"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
