"""chain_keys: the published vectors, an independent reckoning, and what is refused."""

import array
import hashlib
import struct

import ml_dtypes
import numpy as np
import pytest

import kvkeep

MAX = 2**32 - 1


def counted(data):
    return struct.pack("<I", len(data)) + data


def reference_root(fields):
    parts = [b"kvkeep-chain-1", struct.pack("<I", len(fields))]
    for name in sorted(fields, key=str.encode):
        parts += [counted(name.encode()), counted(fields[name].encode())]
    return hashlib.sha256(b"".join(parts)).digest()


def reference_extra(extra):
    if isinstance(extra, bytes):
        return b"\x00" + counted(extra)
    if isinstance(extra, str):
        return b"\x01" + counted(extra.encode())
    return b"\x02" + counted(struct.pack("<q", extra))


def reference_keys(tokens, block_size, fields=None, extras=(), partial=False):
    keys, parent = [], reference_root(fields or {})
    for start in range(0, len(tokens), block_size):
        own = tokens[start : start + block_size]
        if len(own) < block_size and not partial:
            break
        index = start // block_size
        more = (extras[index] or ()) if index < len(extras) else ()
        packed = struct.pack(f"<I{len(own)}I", len(own), *own) + struct.pack("<I", len(more))
        parent = hashlib.sha256(parent + packed + b"".join(map(reference_extra, more))).digest()
        keys.append(parent)
    return keys


@pytest.mark.proves("RUL-19")
def test_published_vectors_hold():
    extras = [None, ["img:ab", b"\x00\xff", -1]]
    keys = kvkeep.chain_keys(
        [1, 2, 3, 4, 5, 6, 7, MAX], block_size=4, model_name="org/モデル", salt="t1", extras=extras
    )
    assert [key.hex() for key in keys] == [
        "d215ddaab830c9bbf5021136eb94a39b152b5e8104a956bdd3e0141d5e49aa1b",
        "f28774e7be39f374fc7f54860589130e41e889e388ccb9263d066e9933f3704d",
    ]
    assert kvkeep.chain_keys([0], block_size=1)[0].hex() == (
        "4dd39cd12c3b17ef3b84cd0aa5f72a860064b1fd44b7f18021d5120ad5bb2b46"
    )


@pytest.mark.parametrize("block_size", [1, 3, 16, 64])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100])
def test_keys_are_those_of_an_independent_reckoning(block_size, partial, count):
    tokens = [i * 2654435761 % 2**32 for i in range(count)]
    fields = {"model": "m", "adapter": "a", "kv_dtype": "bf16"}
    extras = [["é", b""], (), None, [2**63 - 1, -(2**63)]]
    keys = kvkeep.chain_keys(
        tokens,
        block_size=block_size,
        model_name="m",
        adapter="a",
        namespace={"kv_dtype": "bf16"},
        extras=extras,
        partial=partial,
    )
    assert keys == reference_keys(tokens, block_size, fields, extras, partial)


@pytest.mark.parametrize(
    "tokens",
    [
        (1, 2, 3, 4),
        range(1, 5),
        iter([1, 2, 3, 4]),
        [np.int64(1), np.uint8(2), 3, 4],
        bytes([1, 2, 3, 4]),
        array.array("I", [1, 2, 3, 4]),
        array.array("q", [1, 2, 3, 4]),
        np.array([4, 3, 2, 1], np.int16)[::-1],
        np.array([1, 9, 2, 9, 3, 9, 4, 9], np.uint64)[::2],
        *(np.array([1, 2, 3, 4], d) for d in "int8 uint8 int16 uint16 int32 uint32 int64".split()),
    ],
    ids=lambda tokens: f"{type(tokens).__name__}-{getattr(tokens, 'dtype', '')}",
)
def test_tokens_come_as_any_sequence_or_integer_array(tokens):
    assert kvkeep.chain_keys(tokens, block_size=2) == reference_keys([1, 2, 3, 4], 2)


def test_tokens_come_as_mlx_array():
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    for dtype in (mx.int32, mx.uint32, mx.int64):
        tokens = mx.array([1, 2, 3, 4], dtype=dtype)
        assert kvkeep.chain_keys(tokens, block_size=2) == reference_keys([1, 2, 3, 4], 2)


def test_tokens_come_as_torch_tensor():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tokens = torch.tensor([1, 2, 3, 4])
    assert kvkeep.chain_keys(tokens, block_size=2) == reference_keys([1, 2, 3, 4], 2)


@pytest.mark.parametrize(
    "tokens, words",
    [
        ([1, -1], ["tokens[1]", "-1"]),
        ([2**32], ["tokens[0]", "4294967296"]),
        ([0, 0, 10**30], ["tokens[2]", str(10**30)]),
        (np.array([5, -7]), ["tokens[1]", "-7"]),
        (np.array([2**32]), ["tokens[0]", "4294967296"]),
        (np.zeros((2, 2), np.int32), ["tokens", "dimension"]),
        (np.array(3), ["tokens", "dimension"]),
    ],
)
def test_ids_out_of_range_are_value_errors(tokens, words):
    with pytest.raises(ValueError) as error:
        kvkeep.chain_keys(tokens, block_size=1)
    assert isinstance(error.value, kvkeep.InvalidArgument)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "tokens, words",
    [
        ([1, True], ["tokens[1]", "bool"]),
        ([1.0], ["tokens[0]", "float"]),
        ([np.bool_(True)], ["tokens[0]", "bool"]),
        (["1"], ["tokens[0]", "str"]),
        ([[1]], ["tokens[0]", "list"]),
        ("12", ["tokens", "str"]),
        (None, ["tokens", "NoneType"]),
        (7, ["tokens", "int"]),
        (np.zeros(3, np.float32), ["tokens", "F32"]),
        (np.zeros(3, bool), ["tokens", "BOOL"]),
        (np.zeros(3, np.float64), ["tokens", "float64"]),
        (np.zeros(3, ml_dtypes.bfloat16), ["tokens", "BF16"]),
    ],
)
def test_what_is_no_id_is_a_type_error(tokens, words):
    with pytest.raises(TypeError) as error:
        kvkeep.chain_keys(tokens, block_size=1)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "arguments, kind, word",
    [
        ({"block_size": 0}, ValueError, "block_size"),
        ({"block_size": -1}, ValueError, "block_size"),
        ({"block_size": 2.0}, TypeError, "block_size"),
        ({"block_size": True}, TypeError, "block_size"),
        ({"model_name": b"m"}, TypeError, "model_name"),
        ({"model_name": "\ud800"}, ValueError, "model_name"),
        ({"namespace": ["m"]}, TypeError, "namespace"),
        ({"namespace": {"a": 1}}, TypeError, "namespace['a']"),
        ({"namespace": {1: "a"}}, TypeError, "namespace"),
        ({"extras": ["ab"]}, TypeError, "extras[0]"),
        ({"extras": [[1.5]]}, TypeError, "extras[0][0]"),
        ({"extras": [None, [1, False]]}, TypeError, "extras[1][1]"),
        ({"extras": [[2**63]]}, ValueError, "extras[0][0]"),
        ({"partial": 1}, TypeError, "partial"),
        ({"namespace": {"model": "a"}, "model_name": "b"}, ValueError, "model_name"),
        ({"namespace": {"adapter": "a"}, "adapter": "b"}, ValueError, "adapter"),
        ({"namespace": {"salt": ""}, "salt": "b"}, ValueError, "salt"),
    ],
)
def test_messages_name_the_argument(arguments, kind, word):
    with pytest.raises(kind) as error:
        kvkeep.chain_keys([1], **{"block_size": 1, **arguments})
    assert word in str(error.value)


def test_an_empty_convenience_argument_is_absent():
    plain = kvkeep.chain_keys([1], block_size=1)
    assert kvkeep.chain_keys([1], block_size=1, model_name="", adapter="", salt="") == plain
    assert kvkeep.chain_keys([1], block_size=1, namespace={"salt": ""}) != plain
    named = kvkeep.chain_keys([1], block_size=1, model_name="m")
    assert kvkeep.chain_keys([1], block_size=1, namespace={"model": "m"}) == named
    assert kvkeep.chain_keys([1], block_size=1, namespace={"model": "m"}, model_name="m") == named


def test_sizes():
    assert kvkeep.parse_size("1.5 TB") == 1536 * 2**30
    assert kvkeep.parse_size(17) == 17
    assert kvkeep.format_bytes(3 * 2**29) == "1.50GB"
    for wrong in ("50GiB", "-1", "", "x", -1, 2**63):
        with pytest.raises(ValueError):
            kvkeep.parse_size(wrong)
    for wrong in (1.5, True, None, b"1GB"):
        with pytest.raises(TypeError):
            kvkeep.parse_size(wrong)
