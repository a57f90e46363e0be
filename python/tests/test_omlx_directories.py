"""kvkeep.omlx: cache directories are the same ones, in both directions."""

import json
import pathlib
import shutil

import pytest

import test_omlx_round_trip as round_trip
from test_seed_cache import MANIFEST, SEED

BLOCKS = {entry["name"]: entry for entry in MANIFEST}


@pytest.fixture
def states(mx):
    import omlx_states

    return omlx_states


@pytest.fixture
def seed_directory(tmp_path):
    return shutil.copytree(SEED, tmp_path / "seed")


def file_of(directory, entry):
    return pathlib.Path(directory) / entry["key"][0] / (entry["key"] + ".safetensors")


@pytest.mark.proves("SCAN-01")
def test_a_directory_of_the_seed_is_served_as_it_is(open_manager, seed_directory):
    manager = open_manager(seed_directory)
    assert manager.size == len(MANIFEST)
    for entry in MANIFEST:
        meta = manager.get_block_metadata(bytes.fromhex(entry["key"]))
        assert meta.file_path == file_of(seed_directory, entry), entry["name"]
        assert meta.file_size == meta.file_path.stat().st_size
        assert meta.last_access == meta.file_path.stat().st_mtime
        assert (meta.token_count, meta.model_name) == (entry["token_count"], entry["model_name"])


@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "legacy-v2"])
def test_a_block_of_the_seed_is_what_its_file_says(open_manager, seed_directory, states, name):
    entry = BLOCKS[name]
    layers, metadata = states.read_file(file_of(seed_directory, entry))
    data, facts = open_manager(seed_directory).load_block_with_metadata(bytes.fromhex(entry["key"]))
    assert states.same(plain_records(data), layers)
    assert facts["cache_signature"] == metadata["cache_signature"]
    assert facts["num_layers"] == int(metadata["num_layers"])
    assert facts["layer_cache_types"] == json.loads(metadata.get("layer_cache_types", "null"))


@pytest.mark.proves("STATE-11")
def test_a_block_of_format_version_2_is_a_list_of_pairs(open_manager, seed_directory, mx):
    entry = BLOCKS["legacy-v2"]
    [(keys, values)] = open_manager(seed_directory).load_block(bytes.fromhex(entry["key"]))
    arrays = mx.load(str(file_of(seed_directory, entry)))
    assert mx.array_equal(keys, arrays["layer_0_keys"])
    assert mx.array_equal(values, arrays["layer_0_values"])


def test_opening_changes_no_file_of_the_seed(open_manager, seed_directory):
    manager = open_manager(seed_directory)
    for entry in MANIFEST:
        assert manager.load_block(bytes.fromhex(entry["key"])) is not None
    manager.close()
    for entry in MANIFEST:
        original = file_of(SEED, entry).read_bytes()
        assert file_of(seed_directory, entry).read_bytes() == original, entry["name"]


@pytest.mark.parametrize("name", round_trip.names_of_kinds())
def test_a_file_is_readable_by_the_rules_of_the_seed(open_manager, states, mx, name):
    state, layer_type, loaded = round_trip.kinds(mx)[name]
    manager = open_manager()
    assert manager.save_block(round_trip.KEY, [state], 4, "org/m", [layer_type], [(4, "x")])
    manager.close()
    layers, metadata = states.read_file(manager._get_file_path(round_trip.KEY))
    assert states.same(layers, plain_records([loaded or state]))
    assert (metadata["omlx_cache_format_version"], metadata["token_count"]) == ("3", "4")
    assert metadata["block_hash"] == round_trip.KEY.hex() and metadata["model_name"] == "org/m"
    assert json.loads(metadata["layer_cache_types"]) == [layer_type]
    assert json.loads(metadata["layer_meta_states"]) == [[4, "x"]]
    assert json.loads(metadata["cache_signature"]) == {
        "block_size": 4,
        "layer_cache_types": [layer_type],
        "model_name": "org/m",
        "num_layers": 1,
    }


def plain_records(layers):
    """Records as (type, {field: array}): without a class of mlx-vlm a reader has no other form."""
    return [
        (layer[0], tuple((type(side).__name__, side._asdict()) for side in layer[1]))
        if isinstance(layer, tuple) and layer[0] == "__turboquant_v2__"
        else layer
        for layer in layers
    ]


def test_only_blocks_of_the_expected_model_are_served(open_manager, seed_directory):
    mine = [bytes.fromhex(e["key"]) for e in MANIFEST if e["model_name"] == "org/plain"]
    theirs = [bytes.fromhex(e["key"]) for e in MANIFEST if e["model_name"] == "org/hybrid"]
    manager = open_manager(
        seed_directory, expected_model_name="org/plain", expected_num_layers=2, expected_block_size=16
    )
    assert all(manager.has_block(key) for key in mine)
    assert not any(manager.has_block(key) for key in theirs)
    assert manager.get_stats_dict()["incompatible_files"] > 0
