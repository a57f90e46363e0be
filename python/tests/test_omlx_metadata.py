"""kvkeep.omlx: PagedSSDBlockMetadata and parse_size."""

import json
import pathlib

import pytest

from kvkeep.omlx import PagedSSDBlockMetadata, metadata, parse_size

REQUIRED = {
    "block_hash": "ab01",
    "file_path": "/cache/a/ab01.safetensors",
    "file_size": 1024,
    "token_count": 64,
    "created_at": 100.5,
    "last_access": 101.5,
    "num_layers": 2,
}
OPTIONAL = {
    "model_name": "org/m",
    "block_size": 64,
    "cache_signature": "{}",
    "layer_cache_types": ["KVCache", "ArraysCache"],
    "layer_meta_states": [[64], ["0", None, 2.5, ["x"]]],
}


@pytest.mark.proves("META-01", "META-05")
def test_fields_are_read_back_and_optional_ones_have_defaults():
    made = PagedSSDBlockMetadata(b"\xab\x01", pathlib.Path("/x"), 1024, 64, 100.5, 101.5, 2)
    assert (made.block_hash, made.file_path, made.file_size) == (b"\xab\x01", pathlib.Path("/x"), 1024)
    assert (made.token_count, made.created_at, made.last_access) == (64, 100.5, 101.5)
    assert (made.num_layers, made.model_name, made.block_size, made.cache_signature) == (2, "", 0, "")
    assert made.layer_cache_types is None and made.layer_meta_states is None
    assert PagedSSDBlockMetadata.from_dict(REQUIRED).layer_meta_states is None


@pytest.mark.proves("META-02")
def test_touch_takes_the_present_time(monkeypatch):
    made = PagedSSDBlockMetadata.from_dict(REQUIRED)
    monkeypatch.setattr(metadata.time, "time", lambda: 2000.0)
    made.touch()
    assert made.last_access == 2000.0 and made.created_at == 100.5


@pytest.mark.proves("META-03", "META-04")
@pytest.mark.parametrize("values", [REQUIRED, {**REQUIRED, **OPTIONAL}])
def test_a_dict_and_back(values):
    made = PagedSSDBlockMetadata.from_dict({**values, "unknown": 1})
    assert made.block_hash == b"\xab\x01" and isinstance(made.file_path, pathlib.Path)
    there = made.to_dict()
    assert {name: there[name] for name in values} == values
    assert ("layer_meta_states" in there) is ("layer_meta_states" in values)
    assert PagedSSDBlockMetadata.from_dict(json.loads(json.dumps(there))) == made
    if "layer_meta_states" in values:
        assert made.layer_meta_states == [(64,), ("0", None, 2.5, ["x"])]


@pytest.mark.proves("META-06")
@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_member_is_named(name):
    values = {key: value for key, value in REQUIRED.items() if key != name}
    with pytest.raises(ValueError, match=f"{name}: missing"):
        PagedSSDBlockMetadata.from_dict(values)


@pytest.mark.proves("META-06")
@pytest.mark.parametrize(
    "name, value",
    [(name, None) for name in REQUIRED]
    + [(name, object()) for name in REQUIRED]
    + [("block_hash", "xy"), ("block_hash", 1), ("file_size", "1"), ("file_size", 1.5), ("file_size", True)]
    + [("created_at", "1"), ("model_name", 1), ("layer_cache_types", "KVCache"), ("layer_cache_types", [1])]
    + [("layer_meta_states", "x"), ("layer_meta_states", [1]), ("block_size", "1")],
)
def test_a_member_of_a_wrong_type_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name}: "):
        PagedSSDBlockMetadata.from_dict({**REQUIRED, **OPTIONAL, name: value})


@pytest.mark.proves("SIZE-04", "SIZE-06", "SIZE-07")
def test_sizes_are_parsed_as_everywhere():
    assert [parse_size(text) for text in ("1GB", "16gb", "0.5GB", " 100MB ", "10 b")] == [
        1 << 30,
        16 << 30,
        1 << 29,
        100 << 20,
        10,
    ]
    for text in ("invalid", "MB100", "", "GB", "1KiB", "0x10"):
        with pytest.raises(ValueError) as raised:
            parse_size(text)
        assert text in str(raised.value)
