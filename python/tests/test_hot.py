"""The tier in RAM: what is kept there, when it is written, and how it is let go."""

import pathlib

import numpy as np
import pytest

import kvkeep

F = np.arange(4096, dtype=np.float32)
PAIR = [(F, F)]
KEYS = [b"%d" % number for number in range(6)]


def files(path):
    return list(pathlib.Path(path).glob("[0-9a-f]/*.safetensors"))


def fill(cache, keys=KEYS):
    for key in keys:
        assert cache.save(key, PAIR, token_count=1)


def sources(cache, keys=KEYS):
    return [cache.why(key).partition(":")[0] for key in keys]


def physical_ram():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return int(lines[0].split()[1]) * 1024


# Sizes


def test_auto_is_a_twentieth_of_the_ram_and_at_most_1_gb(cache):
    most = min(1 << 30, physical_ram() // 20)
    assert most * 0.99 <= cache.stats()["hot_cache_max_bytes"] <= most * 1.01


@pytest.mark.parametrize("size, expected", [(0, 0), ("0", 0), (5 << 20, 5 << 20), ("3 MB", 3 << 20)])
def test_a_size_is_bytes_or_text(open_cache, size, expected):
    assert open_cache(hot_size=size).stats()["hot_cache_max_bytes"] == expected


def test_without_a_hot_tier_blocks_go_to_disk(open_cache, tmp_path):
    cache = open_cache(hot_size=0)
    assert cache.save(b"k", PAIR, token_count=1).outcome == "queued"
    cache.flush()
    assert cache.load(b"k").source == "disk" and cache.load(b"k").source == "disk"
    assert cache.why(b"k") == "disk"


# When blocks are written


def test_new_blocks_stay_in_ram_until_flush(open_cache, tmp_path):
    cache = open_cache(flush_after=None)
    assert cache.save(b"k", PAIR, token_count=1).outcome == "stored"
    assert cache.load(b"k").source == "hot" and cache.why(b"k") == "hot"
    assert cache.stats()["hot_dirty_blocks"] == 1 and not files(tmp_path / "store")
    assert cache.flush().flushed == 1
    assert len(files(tmp_path / "store")) == 1 and cache.load(b"k").source == "hot"
    assert cache.stats()["hot_dirty_blocks"] == 0


def test_write_through_keeps_nothing_in_ram(open_cache):
    for options, arguments in (({"write_back": False}, {}), ({}, {"write_back": False})):
        cache = open_cache(flush_after=None, **options)
        assert cache.save(b"k", PAIR, token_count=1, **arguments).outcome == "queued"
        cache.flush()
        assert cache.load(b"k", promote=False).source == "disk"
        cache.delete(b"k")
        cache.close()


def test_a_crash_loses_only_what_is_not_written(open_cache, tmp_path, in_new_process):
    source = """
import json, os, sys, kvkeep
cache = kvkeep.BlockCache(sys.argv[1], max_size="1GB", flush_after=None)
cache.save(b"written", [(b"a", b"b")], token_count=1)
cache.flush()
cache.save(b"in ram", [(b"a", b"b")], token_count=1)
print(json.dumps(len(cache)), flush=True)
os._exit(0)
"""
    assert in_new_process(source, tmp_path / "store") == 2
    cache = open_cache()
    assert cache.load(b"written") and cache.load(b"in ram") is None


# Without a disk


def test_hot_only_needs_no_path_and_touches_no_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with kvkeep.BlockCache(hot_only=True, hot_size="1MB") as cache:
        fill(cache)
        assert cache.load(KEYS[0]).source == "hot" and len(cache) == len(KEYS)
        assert cache.flush().flushed == 0
        assert cache.clear_hot() == len(KEYS) and len(cache) == 0
    assert not list(tmp_path.iterdir())


def test_a_limit_is_required_with_a_disk(tmp_path):
    with pytest.raises(kvkeep.InvalidArgument, match="max_size: missing.*hot_only"):
        kvkeep.BlockCache(tmp_path / "store")
    assert not list(tmp_path.iterdir())


# Loading into RAM and letting go


def test_a_load_keeps_the_block_unless_told_otherwise(open_cache):
    fill(open_cache())
    open_cache.close_all()
    cache = open_cache()
    assert cache.load(KEYS[0], promote=False).source == "disk"
    assert cache.load(KEYS[0]).source == "disk"
    assert cache.load(KEYS[0]).source == "hot"
    with pytest.raises(TypeError, match="promote"):
        cache.load(KEYS[0], promote=1)


def test_preload_brings_blocks_into_ram(open_cache):
    fill(open_cache())
    open_cache.close_all()
    cache = open_cache()
    assert cache.preload(KEYS[:3]) == 0  # Fewer than preload_min_blocks.
    assert cache.preload(KEYS) == len(KEYS) and sources(cache) == ["hot"] * len(KEYS)
    assert cache.preload(KEYS) == 0 and cache.stats()["lookups"] == 0
    open_cache.close_all()
    eager = open_cache(preload_min_blocks=1, preload_max_workers=1)
    assert eager.preload(iter(KEYS[:1])) == 1


@pytest.mark.proves("RUL-35")
def test_clearing_spills_by_default(open_cache, tmp_path):
    cache = open_cache(flush_after=None)
    fill(cache)
    assert cache.clear_hot() == len(KEYS)
    cache.flush()
    assert sources(cache) == ["disk"] * len(KEYS) and len(files(tmp_path / "store")) == len(KEYS)


def test_clearing_may_discard(open_cache, tmp_path):
    cache = open_cache(flush_after=None)
    fill(cache)
    assert cache.clear_hot(spill=False) == len(KEYS)
    assert len(cache) == 0 and cache.stats()["ssd_write_drops"] == len(KEYS)
    cache.flush()
    assert not files(tmp_path / "store")


def test_shrinking_lets_the_least_recently_used_go(open_cache):
    cache = open_cache(flush_after=None)
    fill(cache)
    each = cache.stats()["hot_cache_size_bytes"] // len(KEYS)
    assert cache.load(KEYS[1]).source == "hot"
    assert cache.shrink_hot_to(2 * each, keep=[KEYS[0]]) == 4 * each
    cache.flush()
    assert sources(cache) == ["hot", "hot", "disk", "disk", "disk", "disk"]
    assert cache.shrink_hot_to("0") == 2 * each


# One budget for several caches


def test_a_budget_is_one_limit_for_several_caches(open_cache, tmp_path):
    one = open_cache(tmp_path / "one", flush_after=None)
    fill(one, KEYS[:1])
    each = one.stats()["hot_cache_size_bytes"]
    budget = kvkeep.HotBudget(4 * each)
    a = open_cache(tmp_path / "a", budget=budget)
    b = open_cache(tmp_path / "b", budget=budget)
    fill(a, KEYS[:3])
    fill(b, KEYS[:3])
    assert budget.max_bytes == budget.total_bytes == 4 * each and budget.remaining_bytes == 0
    assert [a.stats()["hot_cache_entries"], b.stats()["hot_cache_entries"]] == [1, 3]
    assert a.stats()["hot_cache_max_bytes"] == 4 * each
    assert budget.shrink_to(each) == 3 * each and budget.remaining_bytes == 3 * each
    assert "HotBudget" in repr(budget)


@pytest.mark.parametrize("spill", [True, False])
def test_clearing_a_budget_spills_by_default(open_cache, tmp_path, spill):
    budget = kvkeep.HotBudget("1MB")
    cache = open_cache(budget=budget, flush_after=None)
    fill(cache)
    budget.clear() if spill else budget.clear(spill=False)
    cache.flush()
    assert budget.total_bytes == 0
    assert sources(cache) == ["disk" if spill else "evicted"] * len(KEYS)


def test_a_budget_and_a_size_contradict(tmp_path):
    with pytest.raises(kvkeep.InvalidArgument, match="hot_size"):
        kvkeep.BlockCache(tmp_path, max_size="1GB", budget=kvkeep.HotBudget(1), hot_size=1)
    for size, kind in (("x", ValueError), (-1, ValueError), (None, TypeError)):
        with pytest.raises(kind, match="max_size"):
            kvkeep.HotBudget(size)


# Explaining


def test_why_names_the_place_or_the_reason(open_cache, tmp_path):
    cache = open_cache(hot_size=0)
    fill(cache, [b"k", b"deleted"])
    cache.flush()
    cache.delete(b"deleted")
    assert cache.why(b"k") == "disk" and type(cache.why(b"k")) is str
    for key, name in ((b"deleted", "deleted"), (b"never", "absent")):
        assert cache.why(key).startswith(name + ": ")
        assert kvkeep_reason(cache, key) == name
    cache.close()
    assert cache.why(b"k") == "closed: the cache is closed"
    with pytest.raises(ValueError, match="key"):
        cache.why(b"")


def kvkeep_reason(cache, key):
    before = cache.stats()["miss_reason"]
    assert cache.load(key) is None
    after = cache.stats()["miss_reason"]
    (name,) = (name for name in after if after[name] != before[name])
    return name


def test_a_block_reported_as_bad_leaves_every_tier(open_cache, tmp_path):
    cache = open_cache(flush_after=None)
    fill(cache, [b"k"])
    cache.flush()
    assert cache.report_bad(b"k") is True and cache.report_bad(b"k") is False
    assert b"k" not in cache and cache.load(b"k") is None and not files(tmp_path / "store")
    stats = cache.stats()
    assert stats["reported_bad"] == 1 and stats["hot_cache_entries"] == 0
    assert len(list((tmp_path / "store" / ".kvkeep" / "quarantine").iterdir())) == 1
    cache.close()
    with pytest.raises(kvkeep.Closed):
        cache.report_bad(b"k")
    assert cache.clear_hot() == cache.shrink_hot_to(0) == cache.preload([b"k"]) == 0
