"""Arrays that go into a save: strides, libraries, byte orders, and what is refused."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest

import kvkeep

BASE = np.arange(2 * 6 * 8, dtype=np.float32).reshape(2, 6, 8)

VIEWS = {
    "whole": lambda a: a,
    "slice": lambda a: a[:, 2:5],
    "steps": lambda a: a[::2, ::3, 1::2],
    "negative": lambda a: a[::-1, :, ::-2],
    "transposed": lambda a: a.transpose(2, 0, 1),
    "fortran": lambda a: np.asfortranarray(a),
    "zero stride": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "scalar": lambda a: a[1, 2, 3].reshape(()),
    "no elements": lambda a: a[:, :0],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype),
}


@pytest.mark.proves("ENC-05", "ENC-06")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "float8_e4m3fn"])
def test_views_are_stored_row_major(cache, view, dtype):
    source = VIEWS[view](BASE.astype(getattr(ml_dtypes, dtype, None) or dtype))
    assert cache.save(b"k", [kvkeep.NState([source])], token_count=1)
    (tensor,) = cache.load(b"k").layers[0].elements
    assert tensor.shape == source.shape
    assert bytes(tensor.raw) == source.tobytes()
    assert tensor.nbytes == source.nbytes


@pytest.mark.proves("SAVE-14")
def test_arrays_may_change_once_save_has_returned(cache):
    k, v = np.ones((2, 64), np.float32), np.full((2, 64), 2, ml_dtypes.bfloat16)
    cache.save(b"k", [(k, v)], token_count=1)
    k[:], v[:] = 7, 7
    for _ in range(2):
        keys, values = cache.load(b"k").layers[0]
        assert (np.asarray(keys) == 1).all() and (np.asarray(values) == 2).all()
        cache.flush()


def test_a_loaded_tensor_can_be_saved(cache):
    cache.save(b"1", [(BASE, BASE[::-1])], token_count=1)
    cache.save(b"2", cache.load(b"1").layers, token_count=1)
    keys, values = cache.load(b"2").layers[0]
    assert (np.asarray(keys) == BASE).all() and (np.asarray(values) == BASE[::-1]).all()


def test_any_buffer_is_an_array(cache):
    cache.save(
        b"k",
        [(array.array("h", [1, -2]), memoryview(bytes(range(6))).cast("B", (2, 3)))],
        token_count=1,
    )
    keys, values = cache.load(b"k").layers[0]
    assert (keys.dtype, keys.shape, values.dtype, values.shape) == ("I16", (2,), "U8", (2, 3))


class OnlyDlpack:
    """A producer from before DLPack 1.0: no max_version, no buffer protocol."""

    def __init__(self, inner):
        self._inner = inner

    def __dlpack__(self, stream=None):
        return self._inner.__dlpack__()

    def __dlpack_device__(self):
        return self._inner.__dlpack_device__()


class NewDlpack(OnlyDlpack):
    def __dlpack__(self, **options):
        return self._inner.__dlpack__(**options)


@pytest.mark.parametrize("wrap", [OnlyDlpack, NewDlpack])
@pytest.mark.parametrize("view", ["whole", "steps", "negative", "transposed", "no elements"])
def test_arrays_come_through_dlpack(cache, wrap, view):
    source = VIEWS[view](BASE)
    cache.save(b"k", [kvkeep.NState([wrap(source)])], token_count=1)
    (tensor,) = cache.load(b"k").layers[0].elements
    assert tensor.shape == source.shape and bytes(tensor.raw) == source.tobytes()


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32", "uint8", "bool_"])
def test_mlx_arrays(cache, name):
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    base = mx.arange(48).reshape(4, 12).astype(getattr(mx, name))
    for index, source in enumerate((base, base[1:3, ::2], base.T, base + base)):
        key = b"k%d" % index
        cache.save(key, [(source, source)], token_count=1)
        keys, _ = cache.load(key).layers[0]
        assert mx.array_equal(mx.array(keys), source)
        assert mx.array(keys).dtype == source.dtype


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_torch_tensors(cache, name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    base = torch.arange(48).reshape(4, 12).to(getattr(torch, name))
    for index, source in enumerate((base, base[1:3, ::2], base.T)):
        key = b"k%d" % index
        cache.save(key, [(source, source)], token_count=1)
        keys, _ = cache.load(key).layers[0]
        assert torch.equal(torch.from_dlpack(keys), source)


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class OnGpu:
    """Claims to be on a GPU by patching the device of a capsule."""

    def __init__(self):
        self._array = np.zeros(3, np.float32)

    def __dlpack__(self, **_):
        capsule = self._array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        Device.from_address(get(capsule, b"dltensor") + 8).type = 2
        return capsule


class Broken:
    def __dlpack__(self, **_):
        raise BufferError("requires gradient")


F = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    "layers, words",
    [
        ([(F, F), (F, "text")], ["layers[1][1]", "DLPack or the buffer protocol", "str"]),
        ([(F, 3)], ["layers[0][1]", "int"]),
        ([([1.0], F)], ["layers[0][0]", "list"]),
        ([(F, F.astype(np.float64))], ["layers[0][1]", "float64"]),
        ([(F, F.astype(np.complex64))], ["layers[0][1]", "complex64"]),
        ([(F, F.astype(">f4"))], ["layers[0][1]", ">f4", "big-endian"]),
        ([(F, F.astype(">i2"))], ["layers[0][1]", ">i2", "big-endian"]),
        ([(F, np.array(["a"]))], ["layers[0][1]", "<U1"]),
        ([(F, np.array([None]))], ["layers[0][1]", "object"]),
        ([(F, np.zeros(2, "M8[s]"))], ["layers[0][1]"]),
        ([(F, np.zeros(2, [("a", "f4")]))], ["layers[0][1]", "'a'"]),
        ([(F, F.astype(ml_dtypes.float8_e4m3))], ["layers[0][1]"]),
        ([(F, F.astype(ml_dtypes.int4))], ["layers[0][1]"]),
        ([(F, OnGpu())], ["layers[0][1]", "GPU", "OnGpu"]),
        ([(F, Broken())], ["layers[0][1]", "Broken"]),
        ([(F, F, F)], ["layers[0]", "pair", "tuple of length 3"]),
        ([F], ["layers[0]", "pair", "ndarray"]),
        (["ab"], ["layers[0]", "str"]),
        ([b"ab"], ["layers[0]", "bytes"]),
        ([None], ["layers[0]", "NoneType"]),
        (7, ["layers", "int"]),
        ("ab", ["layers", "str"]),
        ([kvkeep.NState([F, [F, "x"]])], ["layers[0].elements[1][1]", "str"]),
        ([kvkeep.NState([kvkeep.NState([1])])], ["layers[0].elements[0].elements[0]", "int"]),
        ([kvkeep.NState(3)], ["layers[0].elements", "int"]),
        ([kvkeep.NState([F], 3)], ["layers[0].class_name", "int"]),
        ([kvkeep.CacheList([(F, F), F])], ["layers[0].subs[1]", "pair", "ndarray"]),
        ([kvkeep.CacheList([kvkeep.CacheList([])])], ["layers[0].subs[0]", "CacheList"]),
        ([kvkeep.TurboQuant(F, F)], ["layers[0].key", "ndarray"]),
        ([kvkeep.TurboQuant(("T", {"n": 1}), F)], ["layers[0].key[1]['n']", "int"]),
        ([kvkeep.TurboQuant(("T", [F]), F)], ["layers[0].key[1]", "dict", "list"]),
        ([kvkeep.TurboQuant((1, {}), F)], ["layers[0].key[0]", "int"]),
    ],
)
def test_messages_name_the_array(cache, layers, words):
    with pytest.raises(TypeError) as error:
        cache.save(b"k", layers, token_count=1)
    for word in words:
        assert word in str(error.value)
    assert b"k" not in cache


def test_the_reason_of_a_producer_is_kept(cache):
    with pytest.raises(TypeError) as error:
        cache.save(b"k", [(F, Broken())], token_count=1)
    assert isinstance(error.value.__cause__, BufferError)


def test_a_list_that_holds_itself_is_refused(cache):
    loop = [F]
    loop.append(loop)
    with pytest.raises(RecursionError):
        cache.save(b"k", [kvkeep.NState(loop)], token_count=1)
    loop[0] = 1
    with pytest.raises(RecursionError):
        cache.save(b"k", [(F, F)], token_count=1, meta_states=[loop])


def test_an_array_is_held_no_longer_than_the_save(cache):
    data = bytearray(16)
    cache.save(b"k", [(memoryview(data), F)], token_count=1)
    data.append(1)  # BufferError while somebody holds it.
    with pytest.raises(TypeError):
        cache.save(b"l", [(memoryview(data), "text")], token_count=1)
    data.append(1)
