"""BlockCache: its life, batches, refusals, damage, statistics and messages."""

import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import kvkeep
from conftest import ROOT

F = np.arange(256, dtype=np.float32)
PAIR = [(F, F)]


def only_file(path):
    (file,) = pathlib.Path(path).glob("[0-9a-f]/*.safetensors")
    return file


# Opening and closing


def test_a_with_block_closes_and_writes(open_cache, tmp_path):
    with open_cache() as cache:
        assert cache.save(b"k", PAIR, token_count=1).outcome == "stored"
        assert cache.load(b"k").source == "hot"
    only_file(tmp_path / "store")
    assert open_cache().load(b"k").source == "disk"


def test_close_reports_and_may_be_called_again(open_cache):
    cache = open_cache()
    for index in range(5):
        cache.save(b"%d" % index, PAIR, token_count=1)
    report = cache.close(timeout=30)
    assert isinstance(report, kvkeep.CloseReport)
    assert report.failed == [] and report.abandoned == [] and report.flushed <= 5
    assert cache.close() == report == cache.close(0)


def test_flush_puts_everything_on_disk(open_cache, tmp_path):
    cache = open_cache(hot_size=0)
    cache.save(b"k", PAIR, token_count=1)
    assert cache.flush(timeout=30).failed == []
    only_file(tmp_path / "store")
    assert cache.load(b"k").source == "disk"
    assert cache.flush().flushed == 0


def test_a_closed_cache_says_so(open_cache):
    cache = open_cache()
    cache.save(b"k", PAIR, token_count=1)
    cache.close()
    for call in (
        lambda: cache.save(b"k", PAIR, token_count=1),
        lambda: cache.load(b"k"),
        lambda: cache.load_many([b"k"]),
        lambda: cache.load_each([b"k"]),
        lambda: cache.delete(b"k"),
        lambda: cache.flush(),
    ):
        with pytest.raises(kvkeep.Closed) as error:
            call()
        assert error.value.code == "failed_precondition" and "closed" in error.value.message
    assert b"k" not in cache and len(cache) == 0 and not cache.forget(b"k")
    cache.stats(), repr(cache)


def test_a_process_that_ends_closes_its_caches(open_cache, tmp_path):
    source = """
import sys, kvkeep
cache = kvkeep.BlockCache(sys.argv[1], max_size="1GB")
cache.save(b"k", [(bytes(1 << 20), bytes(1 << 20))], token_count=1)
"""
    subprocess.run([sys.executable, "-c", source, tmp_path / "store"], check=True, timeout=60)
    assert open_cache().load(b"k").source == "disk"


def test_a_forked_child_ends_without_closing(open_cache, tmp_path):
    source = """
import os, sys, kvkeep
cache = kvkeep.BlockCache(sys.argv[1], max_size="1GB")
cache.save(b"k", [(bytes(1 << 20), bytes(1 << 20))], token_count=1)
child = os.fork()
if child != 0:
    assert os.waitpid(child, 0)[1] == 0
    assert cache.load(b"k") is not None
"""
    subprocess.run([sys.executable, "-c", source, tmp_path / "store"], check=True, timeout=60)
    assert open_cache().load(b"k").source == "disk"


def test_a_second_process_is_refused(open_cache, tmp_path, in_new_process):
    open_cache()
    source = """
import json, sys, kvkeep
try:
    kvkeep.BlockCache(sys.argv[1], max_size="1GB")
except kvkeep.FailedPrecondition as error:
    print(json.dumps([error.code, error.message]))
"""
    code, message = in_new_process(source, tmp_path / "store")
    assert code == "failed_precondition" and str(tmp_path / "store") in message


def test_the_path_may_be_anything_that_names_a_directory(open_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for path, place in [
        (str(tmp_path / "a"), tmp_path / "a"),
        (tmp_path / "b" / "c", tmp_path / "b" / "c"),
        (os.fsencode(tmp_path / "d\udcff"), tmp_path / "d\udcff"),
        ("~/e", tmp_path / "home" / "e"),
        (None, tmp_path / "home" / ".cache" / "kvkeep" / "python"),
    ]:
        cache = kvkeep.BlockCache(path, max_size="1GB")
        assert cache.save(b"k", PAIR, token_count=1)
        cache.close()
        only_file(place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    kvkeep.BlockCache(max_size="1GB").close()
    assert (tmp_path / "xdg" / "kvkeep" / "python").is_dir()


@pytest.mark.parametrize(
    "arguments, kind, word",
    [
        ({"max_size": 0}, ValueError, "max_size"),
        ({"max_size": None}, ValueError, "max_size"),
        ({"max_size": -1}, ValueError, "max_size"),
        ({"max_size": "50GiB"}, ValueError, "max_size"),
        ({"max_size": 1.5}, TypeError, "max_size"),
        ({"max_size": True}, TypeError, "max_size"),
        ({"model_name": 3}, TypeError, "model_name"),
        ({"num_layers": -1}, ValueError, "num_layers"),
        ({"num_layers": 2**32}, ValueError, "num_layers"),
        ({"block_size": "16"}, TypeError, "block_size"),
        ({"layer_types": "KVCache"}, TypeError, "layer_types"),
        ({"layer_types": [1]}, TypeError, "layer_types[0]"),
        ({"identity": {"a": 1}}, TypeError, "identity['a']"),
        ({"identity": "a"}, TypeError, "identity"),
        ({"durability": "maybe"}, ValueError, "durability"),
        ({"require_digest": 1}, TypeError, "require_digest"),
        ({"ram_max": "x"}, ValueError, "ram_max"),
        ({"quarantine_max": -5}, ValueError, "quarantine_max"),
        ({"pending_cap": 1.0}, TypeError, "pending_cap"),
        ({"queue_wait": -1}, ValueError, "queue_wait"),
        ({"queue_wait": float("nan")}, ValueError, "queue_wait"),
        ({"close_deadline": "1"}, TypeError, "close_deadline"),
        ({"io_deadline": -1}, ValueError, "io_deadline"),
        ({"min_free": "much"}, ValueError, "min_free"),
        ({"eviction": "random"}, ValueError, "eviction"),
        ({"background_reclaim": 2}, ValueError, "background_reclaim"),
        ({"background_reclaim": "5%"}, TypeError, "background_reclaim"),
        ({"reconcile_interval": -1}, ValueError, "reconcile_interval"),
        ({"path": 7}, TypeError, "path"),
        ({"hot_size": "half"}, ValueError, "hot_size"),
        ({"hot_size": None, "budget": 7}, ValueError, "hot_size"),
        ({"hot_size": -1}, ValueError, "hot_size"),
        ({"hot_size": 0.5}, TypeError, "hot_size"),
        ({"budget": "1GB"}, TypeError, "budget"),
        ({"hot_only": 1}, TypeError, "hot_only"),
        ({"write_back": "no"}, TypeError, "write_back"),
        ({"flush_after": 0}, ValueError, "flush_after"),
        ({"flush_after": "2s"}, TypeError, "flush_after"),
        ({"preload_min_blocks": -1}, ValueError, "preload_min_blocks"),
        ({"preload_max_workers": 0}, ValueError, "preload_max_workers"),
        ({"no_such_option": 7}, TypeError, "no_such_option"),
    ],
)
def test_messages_name_the_option(tmp_path, arguments, kind, word):
    given = {"path": tmp_path / "store", "max_size": "1GB", **arguments}
    with pytest.raises(kind) as error:
        kvkeep.BlockCache(**given)
    assert word in str(error.value)


def test_a_path_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(kvkeep.Error) as error:
        kvkeep.BlockCache(tmp_path / "file", max_size="1GB")
    assert str(tmp_path / "file") in str(error.value)


# Saving


def test_a_second_save_finds_the_block_present(cache):
    first = cache.save(b"k", PAIR, token_count=1)
    again = cache.save(b"k", PAIR, token_count=1)
    assert (first.outcome, again.outcome) == ("stored", "present")
    assert first and again and first.reason is None and again.message == ""


def test_a_refusal_is_a_false_result_with_a_reason(open_cache, tmp_path):
    cache = open_cache(model_name="m", num_layers=1, layer_types=["KVCache"], max_size="8MB")
    large = np.zeros(16 << 20, np.uint8)
    for layers, types, reason in [
        (PAIR, ["RotatingKVCache"], "layout"),
        ([(large, large)], None, "too_large"),
    ]:
        saved = cache.save(b"k", layers, token_count=1, layer_types=types)
        assert not saved and saved.outcome == "refused" and saved.reason == reason
        assert saved.message and b"k" not in cache
        assert cache.stats()["save_refused"][reason] == 1


@pytest.mark.parametrize(
    "arguments, kind, word",
    [
        ({"key": b""}, ValueError, "key"),
        ({"key": bytes(120)}, ValueError, "key"),
        ({"key": "text"}, TypeError, "key"),
        ({"key": 7}, TypeError, "key"),
        ({"key": None}, TypeError, "key"),
        ({"token_count": -1}, ValueError, "token_count"),
        ({"token_count": 1.0}, TypeError, "token_count"),
        ({"token_count": True}, TypeError, "token_count"),
        ({"layer_types": "ab"}, TypeError, "layer_types"),
        ({"layer_types": [None]}, TypeError, "layer_types[0]"),
        ({"meta_states": [7]}, TypeError, "meta_states[0]"),
        ({"meta_states": ["ab"]}, TypeError, "meta_states[0]"),
        ({"meta_states": [[b"x"]]}, TypeError, "meta_states[0][0]"),
        ({"meta_states": [[[1, object()]]]}, TypeError, "meta_states[0][0][1]"),
        ({"meta_states": [[2**63]]}, ValueError, "meta_states[0][0]"),
        ({"parent": "x"}, TypeError, "parent"),
        ({"parent": b""}, ValueError, "parent"),
    ],
)
def test_mistakes_raise_and_name_the_argument(cache, arguments, kind, word):
    given = {"key": b"k", "layers": PAIR, "token_count": 1, **arguments}
    with pytest.raises(kind) as error:
        cache.save(**given)
    assert word in str(error.value)
    assert len(cache) == 0


# Loading


@pytest.mark.proves("RUL-17")
def test_load_many_ends_at_the_first_miss_and_load_each_does_not(open_cache):
    keys = [b"0", b"1", b"gone", b"3"]
    with open_cache() as cache:
        for index, key in enumerate(keys):
            if key != b"gone":
                cache.save(key, PAIR, token_count=index + 1)
    cache = open_cache()
    before = cache.stats()
    assert [block.token_count for block in cache.load_many(keys)] == [1, 2]
    after = cache.stats()
    assert after["lookups"] - before["lookups"] == 3
    assert after["miss_reason"]["absent"] - before["miss_reason"]["absent"] == 1

    each = cache.load_each(keys)
    assert [block and block.token_count for block in each] == [1, 2, None, 4]
    assert cache.stats()["lookups"] - after["lookups"] == 4
    assert cache.load_many([]) == cache.load_each([]) == []
    assert cache.load_many(iter(keys[:1]))[0].token_count == 1


@pytest.mark.parametrize("call", ["load", "load_many", "load_each", "delete", "forget", "__contains__"])
def test_what_is_no_key_is_refused_by_name(cache, call):
    many = call.startswith("load_")
    for wrong, kind in (("text", TypeError), (b"", ValueError), (bytes(120), ValueError)):
        with pytest.raises(kind) as error:
            getattr(cache, call)([b"k", wrong] if many else wrong)
        assert ("keys[1]" if many else "key") in str(error.value)
    if many:
        for wrong in (b"k", "k", None):
            with pytest.raises(TypeError, match="keys"):
                getattr(cache, call)(wrong)


def test_a_missing_block_is_none_with_a_reason(cache):
    assert cache.load(b"k") is None
    assert cache.stats()["miss_reason"]["absent"] == 1
    cache.save(b"k", PAIR, token_count=1)
    assert b"k" in cache and len(cache) == 1
    assert cache.delete(b"k") is True and cache.delete(b"k") is False
    assert b"k" not in cache and len(cache) == 0
    assert cache.load(b"k") is None
    assert cache.stats()["miss_reason"]["deleted"] == 1


def test_a_forgotten_block_is_not_served_and_its_file_stays(cache, tmp_path):
    assert cache.forget(b"k") is False
    cache.save(b"k", PAIR, token_count=1)
    cache.flush()
    file = only_file(tmp_path / "store").read_bytes()
    assert cache.forget(b"k") is True and cache.forget(b"k") is False
    assert b"k" not in cache and cache.load(b"k") is None
    assert cache.stats()["miss_reason"]["forgotten"] == 1
    assert only_file(tmp_path / "store").read_bytes() == file
    assert cache.save(b"k", PAIR, token_count=1).outcome == "stored"


@pytest.mark.proves("RUL-14", "RUL-32")
def test_a_damaged_file_is_none_with_a_reason(open_cache, tmp_path):
    with open_cache() as cache:
        cache.save(b"k", PAIR, token_count=1)
    file = only_file(tmp_path / "store")
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    cache = open_cache()
    assert b"k" in cache
    assert cache.load(b"k") is None
    stats = cache.stats()
    assert stats["miss_reason"]["damaged"] == 1 and stats["quarantined"] == 1
    assert b"k" not in cache and cache.load_many([b"k"]) == []
    assert cache.save(b"k", PAIR, token_count=1) and cache.load(b"k") is not None


@pytest.mark.proves("RUL-18")
def test_blocks_of_another_identity_are_misses(open_cache, tmp_path):
    with open_cache(identity={"adapter": "a", "kv_dtype": "bf16"}) as cache:
        cache.save(b"k", PAIR, token_count=1)
    for identity, hit in [
        ({"kv_dtype": "bf16", "adapter": "a"}, True),
        ({"adapter": "b", "kv_dtype": "bf16"}, False),
        (None, False),
        ({}, False),
    ]:
        with open_cache(identity=identity) as cache:
            assert (cache.load(b"k") is not None) == hit
            assert cache.stats()["miss_reason"]["identity"] == (0 if hit else 1)


def test_many_threads_may_use_a_cache(cache):
    failures = []

    def work(number):
        try:
            for index in range(20):
                key = b"%d-%d" % (number, index)
                array = np.full(1000, number * 100 + index, np.int32)
                assert cache.save(key, [(array, array)], token_count=1)
                keys, _ = cache.load(key).layers[0]
                assert (np.asarray(keys) == array).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(cache) == 80


def test_what_blocks_must_be_for_can_change(open_cache):
    cache = open_cache(model_name="m", hot_size=0)
    assert cache.adopt_layer_types(["KVCache"]) and not cache.adopt_layer_types(["Other"])
    assert cache.save(b"k", PAIR, token_count=1, layer_types=["KVCache"])
    assert not cache.save(b"other", PAIR, token_count=1, layer_types=["Other"])
    cache.flush()
    assert cache.set_expected_layer_types(("Other",)) and b"k" in cache
    assert cache.sweep_stale_layouts() == 1 and cache.sweep_stale_layouts() == 0
    assert b"k" not in cache and cache.why(b"k").startswith(("forgotten: ", "layout: "))
    assert cache.save(b"other", PAIR, token_count=1, layer_types=["Other"])
    assert cache.set_expected_layer_types(["KVCache"], turboquant_bits=4) and b"k" in cache
    with pytest.raises(TypeError, match="layer_types"):
        cache.set_expected_layer_types("KVCache")
    with pytest.raises(TypeError, match="turboquant_bits"):
        cache.set_expected_layer_types(["KVCache"], turboquant_bits="4")


# Statistics and messages


def table(header, macro):
    text = (ROOT / "include" / "kvkeep" / header).read_text()
    body = text.split(f"#define {macro}(X)")[1]
    body = re.match(r"(?:.*\\\n)*.*\n", body).group(0)
    return body


def test_stats_has_the_names_of_the_library(cache):
    fields = re.findall(r"X\((\w+),", table("stats.h", "KVKEEP_COUNTERS"))
    fields += re.findall(r"X\((\w+),", table("stats.h", "KVKEEP_GAUGES"))
    reasons = {
        "miss_reason": re.findall(r'X\(\w+, "(\w+)"', table("reason.h", "KVKEEP_MISS_REASONS")),
        "save_refused": re.findall(r'X\(\w+, "(\w+)"', table("reason.h", "KVKEEP_REFUSALS")),
    }
    stats = cache.stats()
    assert list(stats) == [*fields, *reasons, "load_times"] and len(fields) > 30
    for name, names in reasons.items():
        assert list(stats[name]) == names and len(names) > 10
        assert all(type(value) is int for value in stats[name].values())
    assert all(type(stats[field]) is int for field in fields)


@pytest.mark.proves("RUL-32")
def test_lookups_are_hits_plus_misses_by_reason(cache):
    cache.save(b"k", PAIR, token_count=1)
    cache.load_each([b"k", b"a", b"b", b"k"])
    cache.load(b"c")
    stats = cache.stats()
    assert stats["lookups"] == 5 and stats["load_hits"] == 2
    assert stats["lookups"] == stats["load_hits"] + sum(stats["miss_reason"].values())


def test_times_are_counted_by_source(open_cache):
    cache = open_cache(hot_size=0)
    cache.save(b"k", PAIR, token_count=1)
    cache.flush()
    cache.load(b"k")
    times = cache.stats()["load_times"]
    assert list(times) == ["hot", "pending", "disk"]
    assert times["disk"]["count"] == sum(times["disk"]["buckets"]) == 1
    assert times["disk"]["total_ns"] > 0
    assert len(times["disk"]["buckets"]) == len(times["disk"]["bounds_us"]) + 1


def test_representation_names_the_place_and_the_size(cache, tmp_path):
    cache.save(b"k", PAIR, token_count=1)
    text = repr(cache)
    assert text.startswith("kvkeep.BlockCache(") and str(tmp_path / "store") in text


def test_errors_are_what_python_users_expect():
    for cls, base in [
        (kvkeep.InvalidArgument, ValueError),
        (kvkeep.Unavailable, OSError),
        (kvkeep.DeadlineExceeded, TimeoutError),
        (kvkeep.Unimplemented, NotImplementedError),
        (kvkeep.NotFound, LookupError),
        (kvkeep.Internal, RuntimeError),
        (kvkeep.Closed, kvkeep.FailedPrecondition),
    ]:
        assert issubclass(cls, base) and issubclass(cls, kvkeep.Error)
        error = cls("what: why", reason="io", errno=5)
        assert str(error) == error.message == "what: why"
        assert (error.reason, error.sys_errno) == ("io", 5)
    assert kvkeep.Unavailable("what", errno=5).errno == 5
    with pytest.raises(ValueError) as error:
        kvkeep.parse_size("x")
    assert error.value.code == "invalid_argument" and error.value.reason is None
