"""kvkeep.omlx: PagedSSDCacheManager by itself: opening, saving, counting, letting go, closing."""

import inspect
import logging
import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

import kvkeep
from kvkeep import omlx
from kvkeep.omlx import PagedSSDCacheManager

NAMES = [bytes([16 * number, number]) for number in range(1, 7)]


@pytest.fixture
def state(mx):
    array = mx.arange(64 * 64).reshape(1, 1, 64, 64).astype(mx.float16)
    mx.eval(array)  # Other threads than this one could not.
    return (array, array)


@pytest.fixture
def save(state):
    """Saves small blocks of one layer under these names."""

    def save_(manager, *names, **options):
        return [manager.save_block(name, [state], 64, **options) for name in names]

    return save_


def files(path):
    return sorted(found.stem for found in pathlib.Path(path).glob("[0-9a-f]/*.safetensors"))


# The surface: names, arguments and defaults of the class that it replaces.

SURFACE = {
    "__init__": "self, cache_dir, max_size_bytes, hot_cache_max_bytes=0, hot_cache_only=False, "
    "hot_cache_budget=None, expected_model_name='', expected_num_layers=0, expected_block_size=0, "
    "expected_block_size_tokens=256, expected_kv_bytes_per_token=200000, "
    "expected_layer_cache_types=None",
    "save_block": "self, block_hash, cache_data, token_count, model_name='', layer_cache_types=None, "
    "layer_meta_states=None, hot_cache_write_back=True",
    "load_block": "self, block_hash",
    "load_block_with_metadata": "self, block_hash, promote_to_hot_cache=True",
    "get_block_metadata": "self, block_hash",
    "has_block": "self, block_hash",
    "preload_matched_blocks": "self, block_hashes",
    "adopt_layer_signature_if_unset": "self, layer_cache_types",
    "set_expected_layer_signature": "self, layer_cache_types, *, turboquant_kv_bits=None",
    "invalidate_stale_layer_signature": "self",
    "forget_block": "self, block_hash",
    "delete_block": "self, block_hash",
    "enforce_size_limit": "self",
    "clear_hot_cache": "self",
    "shrink_hot_cache_to": "self, target_bytes, protected_hashes=None",
    "clear": "self",
    "get_stats": "self",
    "get_stats_for_model": "self, model_name",
    "get_stats_dict": "self",
    "close": "self",
    "fetch": "self, key",
    "store": "self, key, value",
    "evict": "self, key",
}


def parameters(function):
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(plain))[1:-1]


@pytest.mark.parametrize("name", SURFACE)
def test_arguments_and_defaults_are_those_of_the_seed(name):
    assert parameters(getattr(PagedSSDCacheManager, name)) == SURFACE[name]


def test_everything_public_is_documented():
    for name in omlx.__all__:
        assert inspect.getdoc(getattr(omlx, name)), name
    for owner in (omlx.PagedSSDCacheManager, omlx.SharedHotCacheBudget, omlx.PagedSSDCacheStats):
        assert inspect.getdoc(owner)


# Opening


@pytest.mark.proves("INIT-01", "INIT-09", "STAT-01", "API-04")
def test_a_new_directory(open_manager, tmp_path):
    manager = open_manager(tmp_path / "new" / "store", 1 << 30)
    assert sorted(p.name for p in (tmp_path / "new" / "store").glob("?")) == list("0123456789abcdef")
    assert repr(manager).startswith(f"PagedSSDCacheManager(dir={tmp_path}/new/store, size=")
    assert "1.00GB" in repr(manager) and "files=0" in repr(manager)
    stats = manager.get_stats()
    assert [stats.hits, stats.misses, stats.saves, stats.loads, stats.errors] == [0] * 5
    assert manager.size == 0 and manager.max_size == manager.configured_max_size == 1 << 30


@pytest.mark.proves("INIT-08", "CLOSE-10", "SAVE-19")
def test_without_a_disk(open_manager, save, tmp_path, caplog):
    manager = open_manager(None, 0, hot_cache_max_bytes=1 << 20, hot_cache_only=True)
    assert save(manager, *NAMES) == [True] * len(NAMES) and manager.load_block(NAMES[0])
    assert manager.get_stats_dict()["cache_dir"] == "None" and not list(tmp_path.iterdir())
    with caplog.at_level(logging.WARNING):
        manager.close()
    assert not caplog.records
    named = open_manager(tmp_path / "never made", 0, hot_cache_only=True, hot_cache_max_bytes=0)
    assert save(named, NAMES[0]) == [False] and not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="cache_dir"):
        open_manager(None, 1 << 30)


def test_the_queue_is_sized_by_what_blocks_will_be(open_manager, tmp_path):
    def cap(tokens):
        manager = open_manager(
            tmp_path / f"{tokens}",
            expected_block_size_tokens=tokens,
            expected_kv_bytes_per_token=200_000,
        )
        return manager._cache.pending_cap

    largest, larger, usual = cap(1 << 20), cap(2048), cap(256)
    assert largest == 1 < larger <= usual


def test_a_directory_belongs_to_one_manager_at_a_time(open_manager):
    first = open_manager()
    with pytest.raises(kvkeep.FailedPrecondition, match="store"):
        open_manager()
    first.close()
    open_manager()


def test_the_interface_of_omlx_is_taken_where_it_is_installed(in_new_process):
    source = """
import abc, json, sys, types
interface = types.ModuleType("omlx.cache.interface")
interface.CacheManager = abc.ABCMeta("CacheManager", (), {})
for name in ("omlx", "omlx.cache"):
    sys.modules[name] = types.ModuleType(name)
if sys.argv[1] == "installed":
    sys.modules["omlx.cache.interface"] = interface
from kvkeep.omlx import CacheManager, PagedSSDCacheManager
print(json.dumps([CacheManager is interface.CacheManager, issubclass(PagedSSDCacheManager, CacheManager)]))
"""
    assert in_new_process(source, "installed") == [True, True]
    assert in_new_process(source, "missing") == [False, True]


def test_mlx_is_not_needed_before_the_first_load(in_new_process, tmp_path):
    source = """
import json, sys, kvkeep.omlx
with_manager = kvkeep.omlx.PagedSSDCacheManager(sys.argv[1], 1 << 30)
with_manager.save_block(b"k", [(b"a", b"b")], 1)
with_manager.load_block(b"missing")
with_manager.close()
print(json.dumps([name for name in ("mlx", "numpy") if name in sys.modules]))
"""
    assert in_new_process(source, tmp_path) == []


# Saving and loading


@pytest.mark.proves("CLOSE-03", "CLOSE-04")
def test_blocks_are_kept_in_ram_and_written_at_the_end(open_manager, save):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    assert save(manager, *NAMES) == [True] * len(NAMES)
    assert manager.load_block(NAMES[0]) and manager.get_stats().hot_cache_hits == 1
    manager.close()
    again = open_manager(hot_cache_max_bytes=1 << 20)
    assert again.size == len(NAMES) and again.get_stats().hot_cache_entries == 0
    assert all(again.load_block(name) for name in NAMES)


def test_write_through_keeps_nothing_in_ram(open_manager, save):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    assert save(manager, NAMES[0], hot_cache_write_back=False) == [True]
    assert manager.has_block(NAMES[0]) and manager.get_stats().hot_cache_entries == 0
    assert manager.get_stats().saves == 1


@pytest.mark.proves("LOAD-05", "RUL-31")
def test_hits_and_misses_count_as_they_did(open_manager, save):
    manager = open_manager()
    save(manager, NAMES[0])
    assert save(manager, NAMES[0]) == [True]
    assert manager.load_block(b"unknown") is None
    assert manager.load_block_with_metadata(b"unknown") == (None, None)
    stats = manager.get_stats()
    assert (stats.hits, stats.saves, stats.misses, stats.loads) == (1, 1, 2, 0)
    assert (stats.total_queries, stats.hit_rate, stats.save_rate) == (3, 1 / 3, 1.0)
    assert (stats.saves_present, stats.load_misses) == (1, 2)


@pytest.mark.proves("LOAD-10")
def test_metadata_of_a_load_and_of_the_index(open_manager, state):
    manager = open_manager(expected_model_name="m", expected_num_layers=1)
    types, metas = ["KVCache"], [(64, "x", None)]
    assert manager.save_block(NAMES[0], [state], 64, "m", types, metas)
    loaded, facts = manager.load_block_with_metadata(NAMES[0])
    assert len(loaded) == 1
    signature = facts.pop("cache_signature")
    assert facts == {
        "num_layers": 1,
        "token_count": 64,
        "model_name": "m",
        "block_size": 64,
        "layer_cache_types": types,
        "layer_meta_states": metas,
    }
    manager.close()
    again = open_manager(expected_model_name="m", expected_num_layers=1)
    meta = again.get_block_metadata(NAMES[0])
    assert isinstance(meta, omlx.PagedSSDBlockMetadata) and meta.file_path.exists()
    assert meta.file_path == again._get_file_path(NAMES[0])
    assert meta.file_size == meta.file_path.stat().st_size and meta.block_hash == NAMES[0]
    assert (meta.cache_signature, meta.layer_meta_states) == (signature, metas)
    assert again.load_block_with_metadata(NAMES[0])[1] == {**facts, "cache_signature": signature}


def test_metadata_of_a_block_in_ram_only_is_not_reported(open_manager, save):
    manager = open_manager(None, 0, hot_cache_only=True, hot_cache_max_bytes=1 << 20)
    save(manager, NAMES[0])
    assert manager.get_block_metadata(NAMES[0]) is None and manager.get_block_metadata(b"x") is None
    assert manager.get_stats().total_queries == 0


@pytest.mark.parametrize("metas", [[None], [""], [()], [[]]])
def test_an_absent_meta_state_is_empty(open_manager, state, metas):
    manager = open_manager()
    assert manager.save_block(NAMES[0], [state], 64, "", ["KVCache"], metas)
    assert manager.load_block_with_metadata(NAMES[0])[1]["layer_meta_states"] == [()]


def test_a_meta_state_that_is_one_value_is_a_list_of_one(open_manager, state):
    manager = open_manager()
    assert manager.save_block(NAMES[0], [state, state], 64, "", None, ["1024", 7])
    assert manager.load_block_with_metadata(NAMES[0])[1]["layer_meta_states"] == [("1024",), (7,)]


@pytest.mark.proves("DEF-51")
def test_blocks_that_are_for_something_else_are_refused(open_manager, state, caplog):
    manager = open_manager(
        expected_model_name="m", expected_layer_cache_types=["KVCache"], expected_num_layers=1
    )
    assert not manager.save_block(NAMES[0], [state], 64, "other", ["KVCache"])
    assert not manager.save_block(NAMES[0], [state], 64, "m", ["RotatingKVCache"])
    assert manager.get_stats().save_rejected_incompatible == 2 and not manager.has_block(NAMES[0])
    assert "model: " in caplog.text and "layout: " in caplog.text
    assert manager.save_block(NAMES[0], [state], 64)
    manager.close()
    counting = open_manager(expected_model_name="m", expected_num_layers=1)
    assert not counting.save_block(NAMES[1], [state, state], 64, "m")
    assert counting.get_stats().save_rejected_incompatible == 1


def test_mistakes_are_false_and_logged(open_manager, state, caplog):
    manager = open_manager()
    mistakes = [
        (b"", [state], 64),
        ("text", [state], 64),
        (b"k", [state], 0),
        (b"k", [state], -1),
        (b"k", [], 64),
        (b"k", None, 64),
        (b"k", [state], 64, "", ["KVCache"] * 2),
        (b"k", [state], 64, "", None, [(), ()]),
        (b"k", [state], 64, "", None, [(object(),)]),
    ]
    for number, arguments in enumerate(mistakes, 1):
        assert manager.save_block(*arguments) is False, arguments
        assert len(caplog.records) == number
    assert manager.size == 0 and manager.get_stats().saves == 0


def test_a_state_that_mlx_has_no_dtype_for_is_a_miss(open_manager, tmp_path, mx, caplog):
    import ml_dtypes
    import numpy as np

    f8 = np.ones(4, ml_dtypes.float8_e5m2)
    with kvkeep.BlockCache(tmp_path / "store", max_size="1GB") as cache:
        cache.save(b"k", [(f8, f8)], token_count=1)
    manager = open_manager()
    assert manager.load_block_with_metadata(b"k") == (None, None) and "MLX" in caplog.text


@pytest.mark.proves("ERR-03", "DEF-11")
def test_a_damaged_file_is_a_miss(open_manager, save, tmp_path):
    save(open_manager(), NAMES[0])
    open_manager.close_all()
    manager = open_manager()
    path = manager._get_file_path(NAMES[0])
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert manager.load_block(NAMES[0]) is None and not manager.has_block(NAMES[0])
    stats = manager.get_stats()
    assert (stats.errors, stats.quarantined) == (1, 1) and not path.exists()
    assert manager.get_stats_dict()["miss_reason"]["damaged"] == 1
    assert save(manager, NAMES[0]) == [True] and manager.load_block(NAMES[0])


@pytest.mark.proves("PRELOAD-01", "PRELOAD-02", "PRELOAD-03", "PRELOAD-04", "PRELOAD-12")
def test_preload(open_manager, save):
    save(open_manager(), *NAMES)
    open_manager.close_all()
    assert open_manager().preload_matched_blocks(NAMES) == 0
    open_manager.close_all()
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    assert manager.preload_matched_blocks([]) == manager.preload_matched_blocks(NAMES[:3]) == 0
    assert manager.get_stats().hot_cache_entries == manager.get_stats().preload_calls == 0
    assert manager.preload_matched_blocks(NAMES[:4]) == 4
    stats = manager.get_stats()
    assert (stats.hot_cache_entries, stats.preload_calls, stats.preload_blocks_loaded) == (4, 1, 4)
    assert stats.preload_time_ms > 0 and (stats.loads, stats.hits, stats.misses) == (0, 0, 0)


@pytest.mark.proves("PRELOAD-14")
def test_threads_may_load_what_is_being_preloaded(open_manager, save, state, mx):
    names = [bytes([number]) for number in range(1, 9)]
    save(open_manager(), *names)
    open_manager.close_all()
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    with ThreadPoolExecutor(9) as pool:
        preloaded = pool.submit(manager.preload_matched_blocks, names)
        loaded = list(pool.map(manager.load_block, names))
    assert 0 <= preloaded.result() <= 8
    for [(keys, values)] in loaded:
        assert mx.array_equal(keys, state[0]) and mx.array_equal(values, state[1])


def test_threads_may_save_load_and_delete(open_manager, state, mx):
    manager = open_manager(hot_cache_max_bytes=64 << 10)
    wrong = []

    def work(number):
        for turn in range(20):
            name = b"%d" % ((number + turn) % 5)
            saved = manager.save_block(name, [state], 64)
            found = manager.load_block(name)
            if not saved or (found and not mx.array_equal(found[0][0], state[0])):
                wrong.append(name)
            manager.delete_block(name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert wrong == [] and manager.size == 0


# Counting

FIELDS = (
    "hits misses evictions saves saves_persisted loads errors ssd_write_drops ssd_inline_write_fallbacks "
    "evict_unlink_failures total_size_bytes max_size_bytes configured_max_size_bytes num_files "
    "hot_cache_entries hot_cache_size_bytes hot_cache_max_bytes hot_cache_hits hot_cache_evictions "
    "hot_cache_promotions preload_calls preload_blocks_loaded preload_time_ms"
).split()


@pytest.mark.proves("STAT-02", "STAT-03", "STAT-09")
def test_both_forms_of_the_statistics(open_manager, save, tmp_path):
    save(open_manager(), *NAMES)
    open_manager.close_all()
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    assert manager.preload_matched_blocks(NAMES) == len(NAMES) and manager.load_block(NAMES[0])
    form, stats = manager.get_stats_dict(), manager.get_stats()
    for name in ("max_size", "configured_max_size", "total_size", "hot_cache_size", "hot_cache_max"):
        assert form[f"{name}_formatted"] == kvkeep.format_bytes(form.get(name, form.get(f"{name}_bytes")))
    assert form["cache_dir"] == str(tmp_path / "store")
    assert form["utilization"] == form["total_size"] / form["max_size"] > 0
    assert form["hot_cache_entries"] == len(NAMES) and form["hot_cache_size_bytes"] > 0
    plain = stats.to_dict()
    assert set(FIELDS) <= set(plain)
    assert (plain.pop("total_queries"), plain.pop("hit_rate")) == (1, 1.0)
    assert {name: form[name] for name in plain} == plain


@pytest.mark.proves("STAT-07", "DEF-57")
def test_statistics_of_one_model(open_manager, save):
    manager = open_manager()
    save(manager, *NAMES[:2], model_name="org/a")
    save(manager, NAMES[2], model_name="org/b")
    save(manager, NAMES[3], model_name="org2/b")
    save(manager, NAMES[4])
    manager.close()
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    manager.load_block(NAMES[0])
    a = manager.get_stats_for_model("/models/a/")
    assert (a.model_name, a.num_files, a.hot_cache_entries) == ("org/a", 2, 1)
    assert a.counters_are_global and a.loads == 1 and a.max_size_bytes == manager.max_size
    assert manager.get_stats_for_model("org/b").num_files == 1
    for unclear in ("b", "", "c"):
        assert manager.get_stats_for_model(unclear).num_files == 0


# Letting go


@pytest.mark.proves("DEL-01", "DEL-04", "API-02")
def test_deleting(open_manager, save, tmp_path):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    save(manager, *NAMES[:3])
    assert manager.delete_block(NAMES[0]) is True and manager.delete_block(NAMES[0]) is False
    assert manager.evict(NAMES[1]) is True and manager.evict(NAMES[1]) is False
    manager.close()
    assert files(tmp_path / "store") == [NAMES[2].hex()]
    again = open_manager()
    assert again.delete_block(NAMES[2]) and files(tmp_path / "store") == []


@pytest.mark.proves("FORGET-01", "FORGET-02")
def test_forgetting_keeps_the_file(open_manager, save, tmp_path):
    save(open_manager(), *NAMES[:2])
    open_manager.close_all()
    manager = open_manager()
    tracked = manager._tracked_ssd_size()
    assert manager.forget_block(NAMES[0]) is True and manager.forget_block(NAMES[0]) is False
    assert not manager.has_block(NAMES[0]) and manager.load_block(NAMES[0]) is None
    assert manager._tracked_ssd_size() == tracked and len(files(tmp_path / "store")) == 2
    assert save(manager, NAMES[0]) == [True] and manager.load_block(NAMES[0])


@pytest.mark.proves("CLEAR-01", "CLEAR-02", "CLEAR-03", "DEF-60")
def test_clearing_removes_blocks_of_every_tier(open_manager, save, tmp_path):
    save(open_manager(), *NAMES[:2], model_name="other")
    open_manager.close_all()
    manager = open_manager(expected_model_name="m", hot_cache_max_bytes=1 << 20)
    assert manager.size == 0
    save(manager, *NAMES[2:])
    assert manager.clear() == len(NAMES) and manager.clear() == 0
    manager.close()
    assert files(tmp_path / "store") == []


@pytest.mark.proves("RUL-35")
def test_clearing_the_hot_tier_loses_nothing(open_manager, save):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    save(manager, *NAMES)
    assert manager.clear_hot_cache() == len(NAMES) and manager.clear_hot_cache() == 0
    assert manager.get_stats().hot_cache_size_bytes == 0
    assert all(manager.load_block(name) for name in NAMES)
    assert manager.get_stats().ssd_write_drops == 0


@pytest.mark.proves("EVICT-01")
def test_the_limit_holds(open_manager, save, tmp_path):
    manager = open_manager(tmp_path / "store", 256 << 10)
    assert manager.enforce_size_limit() == 0
    for number in range(40):
        save(manager, b"\x10%d" % number)
        assert manager._tracked_ssd_size() <= 256 << 10
    manager.close()
    assert 0 < len(files(tmp_path / "store")) < 40
    assert sum(p.stat().st_size for p in (tmp_path / "store").rglob("*") if p.is_file()) <= 256 << 10


# Closing


@pytest.mark.proves("CLOSE-01", "CLOSE-05", "CLOSE-07", "DEF-15")
def test_a_closed_manager_does_nothing(open_manager, save, state, tmp_path):
    manager = open_manager(hot_cache_max_bytes=1 << 20)
    save(manager, NAMES[0])
    assert manager.close() is None and manager.close() is None
    assert save(manager, NAMES[1]) == [False]
    assert manager.load_block(NAMES[0]) is None and manager.fetch(NAMES[0]) == (None, False)
    assert not manager.has_block(NAMES[0]) and not manager.delete_block(NAMES[0])
    assert not manager.forget_block(NAMES[0]) and manager.get_block_metadata(NAMES[0]) is None
    nothing = (manager.clear, manager.clear_hot_cache, manager.enforce_size_limit)
    assert [call() for call in nothing] == [0, 0, 0] and manager.size == 0
    assert manager.preload_matched_blocks(NAMES) == manager.shrink_hot_cache_to(0) == 0
    assert not manager.set_expected_layer_signature(["KVCache"])
    assert manager.invalidate_stale_layer_signature() == 0
    assert manager.get_stats().hot_cache_entries == 0 and "files=1" in repr(manager)
    assert files(tmp_path / "store") == [NAMES[0].hex()]


# The generic interface


@pytest.mark.proves("API-01", "API-05", "API-06")
def test_fetch_and_store(open_manager, state):
    manager = open_manager(expected_block_size_tokens=64)
    assert manager.fetch(NAMES[0]) == (None, False)
    assert manager.store(NAMES[0], ([state], 64)) and manager.store(NAMES[1], ([state], 64, "m"))
    layers, hit = manager.fetch(NAMES[0])
    assert hit and len(layers) == 1
    assert manager.load_block_with_metadata(NAMES[1])[1]["model_name"] == "m"
    assert manager.store(NAMES[2], [state]) is False  # A block of no tokens.
    for key in ("text", 7, None, bytearray(b"k")):
        assert manager.fetch(key) == (None, False)
        assert manager.store(key, ([state], 64)) is False and manager.evict(key) is False
    assert manager.utilization == manager.size / manager.max_size
