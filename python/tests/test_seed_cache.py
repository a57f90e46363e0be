"""A cache directory written by oMLX 0.5 opens as it is; every block holds what was saved."""

import json
import shutil

import pytest

import contents
import kvkeep
from conftest import ROOT

SEED = ROOT / "tests" / "data" / "seed-cache"
MANIFEST = json.loads((SEED / "manifest.json").read_text())


@pytest.fixture
def seed_cache(open_cache, tmp_path):
    shutil.copytree(SEED, tmp_path / "seed")
    return open_cache(tmp_path / "seed")


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["name"])
def test_every_block_is_what_was_saved(seed_cache, entry):
    block = seed_cache.load(bytes.fromhex(entry["key"]))
    assert contents.of_layers(block.layers) == entry["contents"]
    assert block.token_count == entry["token_count"]
    assert block.model_name == entry["model_name"]
    if entry["name"] != "rotating":  # Its type and meta state were adapted when they were saved.
        assert block.layer_types == entry["layer_types"]
        assert block.meta_states == entry["meta_states"]
    assert seed_cache.stats()["unverified_loads"] == 1


@pytest.mark.proves("RUL-16")
def test_files_without_a_digest_can_be_refused(open_cache, tmp_path):
    shutil.copytree(SEED, tmp_path / "seed")
    cache = open_cache(tmp_path / "seed", require_digest=True)
    keys = [bytes.fromhex(entry["key"]) for entry in MANIFEST]
    assert cache.load_each(keys) == [None] * len(keys)
    assert cache.stats()["miss_reason"]["undigested"] == len(keys)


def test_a_block_of_the_seed_can_be_saved_again(seed_cache, open_cache, tmp_path):
    for entry in MANIFEST:
        block = seed_cache.load(bytes.fromhex(entry["key"]))
        with open_cache(tmp_path / entry["name"], model_name=block.model_name) as cache:
            assert cache.save(
                b"k",
                block.layers,
                token_count=block.token_count,
                layer_types=block.layer_types,
                meta_states=block.meta_states,
            ), entry["name"]
        with open_cache(tmp_path / entry["name"], model_name=block.model_name) as cache:
            assert contents.of_layers(cache.load(b"k").layers) == entry["contents"]
            assert cache.stats()["unverified_loads"] == 0
    assert isinstance(block, kvkeep.Block)
