"""Tensors that MLX reads out of a file that does not exist."""

import threading

import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is missing (run: tools/install-deps mlx demo)")

import numpy

from kvkeep.mlx import _arrays

DTYPES = {
    "BOOL": mx.bool_, "U8": mx.uint8, "U16": mx.uint16, "U32": mx.uint32, "U64": mx.uint64,
    "I8": mx.int8, "I16": mx.int16, "I32": mx.int32, "I64": mx.int64, "F16": mx.float16,
    "BF16": mx.bfloat16, "F32": mx.float32,
}


class Memory:
    """A source of bytes that are all the same."""

    def __init__(self, value, dtype="U8", shape=(64,)):
        self.dtype, self.shape = dtype, shape
        self.nbytes = int(numpy.prod(shape, dtype=int)) * DTYPES[dtype].size
        self.content = bytes([value]) * self.nbytes

    def copy_into(self, buffer):
        memoryview(buffer)[:] = self.content


class Failing(Memory):
    def copy_into(self, buffer):
        raise OSError("this source fails")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_shape_and_bytes_stay(dtype):
    sources = [Memory(1, dtype, (1, 3, 4)), Memory(0, dtype, ()), Memory(1, dtype, (2, 0, 3))]
    arrays = _arrays.to_mlx(sources)
    assert [array.shape for array in arrays] == [source.shape for source in sources]
    assert {array.dtype for array in arrays} == {DTYPES[dtype]}
    assert [memoryview(array).tobytes() for array in arrays] == [source.content for source in sources]


def test_no_sources_are_no_arrays():
    assert _arrays.to_mlx([]) == []


def test_a_tensor_of_a_block_can_be_read(cache):
    given = mx.random.normal((1, 2, 16, 8)).astype(mx.bfloat16)
    cache.save(b"k" * 32, [(given, given)], token_count=16)
    keys, _ = cache.load(b"k" * 32).layers[0]
    [found] = _arrays.to_mlx([_arrays.WholeTensor(keys)])
    assert mx.array_equal(found, given) and found.dtype == mx.bfloat16


def test_a_source_that_fails_makes_no_array():
    with pytest.raises(RuntimeError, match="this source fails"):
        _arrays.to_mlx([Memory(1), Failing(2), Memory(3)])


def test_reads_of_several_threads_do_not_disturb_each_other():
    sources = [Memory(value) for value in range(4)]
    file = _arrays._TensorFile(sources)
    begin = file.seek(0, 2) - sum(source.nbytes for source in sources)
    all_have_sought = threading.Barrier(len(sources))
    read = [bytearray(64) for _ in sources]

    def reader(i):
        file.seek(begin + 64 * i)
        all_have_sought.wait(60)
        file.readinto(read[i])

    threads = [threading.Thread(target=reader, args=(i,)) for i in range(len(sources))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [source.content for source in sources]
    file.require_all_read()
