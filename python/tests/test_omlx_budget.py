"""kvkeep.omlx: one budget for several managers, and for other objects that hold blocks."""

import gc
import logging

import pytest

from kvkeep.omlx import SharedHotCacheBudget


class Owner:
    def __init__(self, cleared=0):
        self.calls, self.told, self.cleared = 0, [], cleared

    def clear_hot_cache(self):
        self.calls += 1
        return self.cleared


class TellableOwner(Owner):
    def on_budget_eviction(self, block_hash):
        self.told.append(block_hash)


@pytest.mark.proves("BUDGET-01")
def test_a_new_budget_is_empty():
    budget = SharedHotCacheBudget(1024)
    assert (budget.max_bytes, budget.total_bytes, budget.remaining_bytes) == (1024, 0, 1024)
    assert SharedHotCacheBudget(-5).max_bytes == 0


@pytest.mark.proves("BUDGET-02", "BUDGET-05")
def test_the_oldest_of_any_owner_leave():
    budget, a, b = SharedHotCacheBudget(300), Owner(), Owner()
    assert [budget.put(a, b"1", 100), budget.put(b, b"2", 100), budget.put(a, b"3", 100)] == [[]] * 3
    budget.touch(a, b"1")
    budget.touch(a, b"never held")
    assert budget.put(b, b"4", 150) == [(b, b"2"), (a, b"3")]
    assert budget.total_bytes == 250
    assert budget.put(b, b"4", 50) == [] and budget.total_bytes == 150
    assert (a.told, b.told) == ([], [])


@pytest.mark.proves("BUDGET-03")
def test_a_block_larger_than_the_limit_is_kept_alone():
    budget, owner = SharedHotCacheBudget(100), Owner()
    budget.put(owner, b"small", 50)
    assert budget.put(owner, b"large", 200) == [(owner, b"small")]
    assert (budget.total_bytes, budget.remaining_bytes) == (200, 0)
    assert budget.put(owner, b"next", 50) == [(owner, b"large")] and budget.total_bytes == 50


@pytest.mark.proves("BUDGET-06")
def test_what_is_forgotten_is_not_charged():
    budget, a, b = SharedHotCacheBudget(1024), Owner(), Owner()
    for owner, name in ((a, b"1"), (a, b"2"), (b, b"1"), (b, b"2")):
        budget.put(owner, name, 100)
    budget.forget(a, b"1")
    budget.forget(a, b"1")
    assert budget.total_bytes == 300
    budget.forget_owner(b)
    budget.forget_owner(b)
    assert budget.total_bytes == 100
    assert budget.put(b, b"3", 100) == [] and budget.total_bytes == 200


@pytest.mark.proves("BUDGET-07", "BUDGET-08")
def test_every_owner_is_cleared_once():
    budget, a, b = SharedHotCacheBudget(1024), Owner(3), Owner(4)
    assert budget.clear_all_owners() == 0
    for owner, name in ((a, b"1"), (a, b"2"), (b, b"1")):
        budget.put(owner, name, 10)
    assert budget.clear_all_owners() == 7
    assert (a.calls, b.calls, budget.total_bytes) == (1, 1, 0)


@pytest.mark.proves("BUDGET-09")
def test_an_owner_that_fails_does_not_keep_the_others(caplog):
    class Failing(Owner):
        def clear_hot_cache(self):
            raise RuntimeError("no")

    budget, bad, good = SharedHotCacheBudget(1024), Failing(), Owner(2)
    budget.put(bad, b"1", 10)
    budget.put(good, b"2", 20)
    with caplog.at_level(logging.WARNING):
        assert budget.clear_all_owners() == 2
    assert "could not be cleared" in caplog.text and budget.total_bytes == 10


@pytest.mark.proves("BUDGET-10")
def test_shrinking_tells_the_owners():
    budget, a, deaf = SharedHotCacheBudget(1024), TellableOwner(), Owner()
    for owner, name in ((a, b"1"), (deaf, b"2"), (a, b"3"), (a, b"4")):
        budget.put(owner, name, 100)
    assert budget.shrink_to(200, {b"1"}) == 200
    assert a.told == [b"3", b"4"] and budget.total_bytes == 200
    assert budget.shrink_to(-1) == 100 and budget.total_bytes == 100  # Nobody can tell the other.


@pytest.mark.proves("BUDGET-13")
def test_a_budget_does_not_keep_its_owners():
    budget, owner = SharedHotCacheBudget(1024), Owner()
    budget.put(owner, b"1", 100)
    del owner
    gc.collect()
    assert budget.total_bytes == 0 and budget.clear_all_owners() == 0
    assert budget.put("text", b"1", 100) == [] and budget.put("text", b"2", 100) == []
    assert budget.total_bytes == 200


# With managers


@pytest.fixture
def save(mx):
    def save_(manager, *names):
        for name in names:
            array = mx.full((1, 1, 64, 64), name[0])
            assert manager.save_block(name, [(array, array)], 64)

    return save_


@pytest.fixture
def block_bytes(open_manager, save, tmp_path):
    """RAM of one block of save()."""
    sample = open_manager(tmp_path / "sample", hot_cache_max_bytes=1 << 20)
    save(sample, b"0")
    return sample.get_stats().hot_cache_size_bytes


@pytest.mark.proves("INIT-03", "BUDGET-11")
def test_managers_share_one_limit(open_manager, save, block_bytes, tmp_path):
    budget = SharedHotCacheBudget(3 * block_bytes)
    a = open_manager(tmp_path / "a", hot_cache_budget=budget, hot_cache_max_bytes=1)
    b = open_manager(tmp_path / "b", hot_cache_budget=budget)
    assert a.get_stats().hot_cache_max_bytes == 3 * block_bytes
    save(a, b"1", b"2")
    save(b, b"3", b"4")
    assert budget.total_bytes == 3 * block_bytes and budget.remaining_bytes == 0
    assert [a.get_stats().hot_cache_entries, b.get_stats().hot_cache_entries] == [1, 2]
    assert [a.get_stats().hot_cache_evictions, b.get_stats().hot_cache_evictions] == [1, 0]
    a.close()
    assert (tmp_path / "a" / "3" / "31.safetensors").exists() and budget.total_bytes == 2 * block_bytes
    assert budget.clear_all_owners() == 2 and budget.total_bytes == 0


@pytest.mark.proves("DEF-64")
def test_a_manager_shrinks_its_own_share(open_manager, save, block_bytes, tmp_path):
    budget = SharedHotCacheBudget(10 * block_bytes)
    a = open_manager(tmp_path / "a", hot_cache_budget=budget)
    b = open_manager(tmp_path / "b", hot_cache_budget=budget)
    save(a, b"1", b"2", b"3")
    save(b, b"4")
    assert a.shrink_hot_cache_to(block_bytes, {b"1"}) == 2 * block_bytes
    assert [a.get_stats().hot_cache_entries, b.get_stats().hot_cache_entries] == [1, 1]
    assert a.load_block(b"1") and a.get_stats().load_hits_hot == 1
    assert budget.shrink_to(0, [b"1"]) == block_bytes and budget.total_bytes == block_bytes


@pytest.mark.proves("BUDGET-04", "PRELOAD-11")
def test_a_budget_that_others_fill_leaves_nothing_to_preload(open_manager, save, tmp_path):
    names = [b"1", b"2", b"3", b"4"]
    save(open_manager(), *names)
    open_manager.close_all()
    budget, filler = SharedHotCacheBudget(1024), Owner()
    budget.put(filler, b"filler", 1024)
    assert (budget.remaining_bytes, budget.total_bytes) == (0, 1024)
    manager = open_manager(hot_cache_budget=budget)
    assert manager.preload_matched_blocks(names) == 0 and budget.total_bytes == 1024
    assert manager.get_stats().hot_cache_entries == 0 and manager.get_stats().preload_calls == 0


def test_managers_and_others_make_room_for_each_other(open_manager, save, block_bytes, tmp_path):
    budget, other, deaf = SharedHotCacheBudget(2 * block_bytes), TellableOwner(), Owner()
    manager = open_manager(hot_cache_budget=budget)
    budget.put(other, b"x", block_bytes)
    save(manager, b"1", b"2")
    assert other.told == [b"x"] and manager.get_stats().hot_cache_entries == 2
    assert budget.put(deaf, b"y", block_bytes) == []  # The manager's block has left by itself.
    assert manager.get_stats().hot_cache_entries == 1 and manager.load_block(b"1") is not None
    with pytest.raises(TypeError, match="own account"):
        budget.put(manager, b"z", 1)


def test_a_budget_of_another_kind_is_refused(open_manager, tmp_path):
    with pytest.raises(TypeError, match="hot_cache_budget"):
        open_manager(hot_cache_budget=object())
    assert not list(tmp_path.iterdir())
