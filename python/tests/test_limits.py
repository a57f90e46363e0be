"""The limit on disk: what leaves, on whose word, and what stays free."""

import pathlib

import numpy as np
import pytest

import kvkeep

F = np.zeros(16 << 10, np.float32)
PAIR = [(F, F)]  # 128 KB.
KEYS = [b"%d" % number for number in range(8)]


def files(path):
    return list(pathlib.Path(path).glob("[0-9a-f]/*.safetensors"))


def fill(cache):
    for key in KEYS:
        assert cache.save(key, PAIR, token_count=1)
    cache.flush()


def test_clear_removes_every_block(open_cache, tmp_path):
    cache = open_cache()
    fill(cache)
    cache.save(b"not on disk yet", PAIR, token_count=1)
    assert cache.clear() == len(KEYS) + 1
    assert len(cache) == 0 and not files(tmp_path / "store") and cache.clear() == 0
    cache.close()
    with pytest.raises(kvkeep.Closed):
        cache.clear()


def test_a_lower_limit_is_enforced_on_demand(open_cache, tmp_path):
    cache = open_cache(hot_size=0, background_reclaim=0)
    fill(cache)
    used = cache.stats()["total_size_bytes"]
    assert cache.enforce_size_limit() == 0
    cache.set_max_size(used // 2)
    assert cache.enforce_size_limit() > 0
    stats = cache.stats()
    assert stats["total_size_bytes"] <= used // 2 == stats["configured_max_size_bytes"]
    assert KEYS[-1] in cache and KEYS[0] not in cache
    with pytest.raises(ValueError, match="max_size"):
        cache.set_max_size("much")


def test_room_can_be_made_ahead(open_cache, tmp_path):
    cache = open_cache(max_size="2MB", hot_size=0, background_reclaim=0)
    fill(cache)
    used = cache.stats()["total_size_bytes"]
    incoming = (2 << 20) - used + 1
    bounded = cache.make_room(incoming, max_unlinks=0)
    assert (bounded.evicted, bounded.failed) == (0, 0) and bounded.deferred_bytes > 0
    report = cache.make_room(incoming, unbounded=True)
    assert isinstance(report, kvkeep.EvictionReport)
    assert report.evicted == 1 and report.deferred_bytes == 0 and len(files(tmp_path / "store")) == 7
    for arguments, word in (({"incoming": -1}, "incoming"), ({"incoming": 1, "max_unlinks": -1}, "max")):
        with pytest.raises(ValueError, match=word):
            cache.make_room(**arguments)


@pytest.mark.parametrize("eviction, leaves", [("leaf_first_lru", b"child"), ("lru", b"parent")])
def test_the_order_of_eviction_is_an_option(open_cache, eviction, leaves):
    cache = open_cache(hot_size=0, eviction=eviction, background_reclaim=0, min_free=0)
    cache.save(b"parent", PAIR, token_count=1)
    cache.save(b"child", PAIR, token_count=1, parent=b"parent")
    cache.flush()
    cache.set_max_size(cache.stats()["total_size_bytes"] + (64 << 10))
    assert cache.make_room("96KB").evicted == 1
    assert leaves not in cache and len(cache) == 1


def test_what_must_stay_free_lowers_the_limit(open_cache, tmp_path):
    assert open_cache(tmp_path / "a", min_free=0).stats()["max_size_bytes"] == 1 << 30
    stats = open_cache(tmp_path / "b", min_free=1 << 60).stats()
    assert stats["max_size_bytes"] < 1 << 30 == stats["configured_max_size_bytes"]


def test_the_hot_tier_can_be_resized(open_cache):
    cache = open_cache(hot_size="1MB")
    cache.set_hot_size("2MB")
    assert cache.stats()["hot_cache_max_bytes"] == 2 << 20
    with pytest.raises(ValueError, match="hot_size"):
        cache.set_hot_size(-1)
