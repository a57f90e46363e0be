"""What a cache says about its blocks and about itself without loading anything."""

import json

import numpy as np
import pytest

import kvkeep

F = np.arange(4096, dtype=np.float32)
PAIR = [(F, F)]


def test_metadata_of_a_block(open_cache, tmp_path):
    cache = open_cache(model_name="m", block_size=16, flush_after=None)
    cache.save(
        b"\xab1",
        PAIR,
        token_count=7,
        layer_types=["KVCache"],
        meta_states=[[7, "x"]],
        parent=b"p",
    )
    assert cache.block_meta(b"\xab1") is None  # Only in RAM so far.
    cache.flush()
    meta = cache.block_meta(b"\xab1")
    assert isinstance(meta, kvkeep.BlockMeta)
    assert meta.key == b"\xab1" and meta.path == tmp_path / "store" / "a" / "ab31.safetensors"
    assert meta.path == cache.block_path(b"\xab1") and meta.file_size == meta.path.stat().st_size
    assert (meta.num_layers, meta.token_count, meta.block_size) == (1, 7, 16)
    assert (meta.model_name, meta.layer_types, meta.meta_states) == ("m", ["KVCache"], [[7, "x"]])
    assert meta.parent == b"p" and 0 < meta.created_at <= meta.last_access
    assert json.loads(meta.signature)["model_name"] == "m"
    assert meta.signature == cache.load(b"\xab1").signature
    assert cache.block_meta(b"absent") is None and cache.stats()["lookups"] == 1


def test_what_is_expected_follows_a_change(open_cache):
    cache = open_cache(model_name="m", num_layers=1, block_size=16)
    assert cache.expected_layout() == kvkeep.ExpectedLayout("m", 1, 16, None, None)
    assert cache.set_expected_layer_types(["TurboQuantKVCache"], turboquant_bits=3.5)
    assert cache.expected_layout() == kvkeep.ExpectedLayout("m", 1, 16, ["TurboQuantKVCache"], 3.5)


def test_a_save_may_name_its_model(open_cache):
    cache = open_cache(flush_after=None)
    assert cache.save(b"k", PAIR, token_count=1, model_name="org/a")
    assert cache.save(b"l", PAIR, token_count=1, model_name="org/b")
    assert cache.load(b"k").model_name == "org/a"
    named = open_cache(cache.block_path(b"k").parents[2] / "named", model_name="m")
    assert named.save(b"k", PAIR, token_count=1, model_name="n").reason == "model"
    assert named.save(b"k", PAIR, token_count=1) and named.load(b"k").model_name == "m"


def test_figures_of_one_model(open_cache):
    cache = open_cache(flush_after=None)
    cache.save(b"k", PAIR, token_count=1, model_name="org/a")
    cache.flush()
    cache.save(b"l", PAIR, token_count=1, model_name="org/b")
    stats = cache.stats_for_model("a/")
    assert (stats["model_name"], stats["num_files"]) == ("org/a", 1)
    assert stats["total_size_bytes"] > F.nbytes and stats["hot_cache_entries"] == 1
    assert stats["max_size_bytes"] == cache.stats()["max_size_bytes"]
    assert cache.stats_for_model("b")["num_files"] == 0
    assert cache.stats_for_model("c")["model_name"] == ""
    with pytest.raises(TypeError, match="model_name"):
        cache.stats_for_model(None)


def test_the_queue_is_sized_by_what_blocks_will_be(open_cache, tmp_path):
    def cap(name, **options):
        return open_cache(tmp_path / name, **options).pending_cap

    assert cap("given", pending_cap=7, block_size_tokens=1) == 7
    assert cap("small", block_size_tokens=1, kv_bytes_per_token=1) == 256
    assert cap("large", block_size_tokens=1 << 20, kv_bytes_per_token="1GB") == 1
    for option in ("kv_bytes_per_token", "block_size_tokens"):
        with pytest.raises(ValueError, match=option):
            open_cache(tmp_path / "refused", **{option: -1})
