"""Python code that holds blocks on account of a budget, beside caches."""

import numpy as np
import pytest

import kvkeep
from kvkeep._kvkeep import BudgetOwner

F = np.zeros(4096, np.float32)
PAIR = [(F, F)]


class Shelf:
    """Lets go of what it is asked for, unless it is told to keep."""

    def __init__(self, budget):
        self.gone, self.keeps = [], False
        self.account = BudgetOwner(budget, self.give_up)

    def give_up(self, key):
        self.gone.append(key)
        return not self.keeps


@pytest.fixture
def budget():
    return kvkeep.HotBudget(300)


def test_a_block_leaves_for_another_in_the_order_of_last_use(budget):
    one, other = Shelf(budget), Shelf(budget)
    assert one.account.put(b"a", 100) and other.account.put(b"b", 100) and one.account.put(b"c", 100)
    one.account.touch(b"a")
    assert one.account.put(b"d", 150) and budget.total_bytes == 250
    assert (one.gone, other.gone) == ([b"c"], [b"b"])
    assert one.account.put(b"d", 50) and budget.total_bytes == 150  # In place of the earlier one.


def test_a_block_that_has_to_stay_leaves_no_room(budget):
    one, other = Shelf(budget), Shelf(budget)
    one.account.put(b"a", 200)
    one.keeps = True
    assert not other.account.put(b"b", 200)
    assert budget.total_bytes == 200 and one.gone == [b"a"]


def test_what_is_forgotten_is_not_asked_for(budget):
    shelf = Shelf(budget)
    for key in (b"a", b"b", b"c"):
        shelf.account.put(key, 100)
    shelf.account.forget(b"a")
    shelf.account.forget(b"never held")
    assert budget.total_bytes == 200 and budget.shrink_to(100) == 100 and shelf.gone == [b"b"]
    shelf.account.forget_all()
    assert budget.total_bytes == 0 and budget.shrink_to(0) == 0 and shelf.gone == [b"b"]


def test_clearing_asks_for_everything(budget):
    shelf = Shelf(budget)
    shelf.account.put(b"a", 100)
    shelf.account.put(b"b", 100)
    budget.clear(spill=False)
    assert sorted(shelf.gone) == [b"a", b"b"] and budget.total_bytes == 0


def test_a_charge_ends_with_its_owner(budget):
    account = BudgetOwner(budget, lambda key: True)
    account.put(b"a", 100)
    del account
    assert budget.total_bytes == 0


def test_an_owner_that_fails_keeps_its_block(budget, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: seen.append(report.exc_type))
    account = BudgetOwner(budget, lambda key: 1 // 0)
    account.put(b"a", 200)
    assert budget.shrink_to(0) == 0 and budget.total_bytes == 200
    assert seen == [ZeroDivisionError]


def test_a_cache_asks_owners_for_room(open_cache):
    with open_cache(flush_after=None) as sample:
        sample.save(b"k", PAIR, token_count=1)
        each = sample.stats()["hot_cache_size_bytes"]
    budget = kvkeep.HotBudget(each)
    shelf = Shelf(budget)
    shelf.account.put(b"a", 10)
    cache = open_cache(budget=budget, flush_after=None)
    assert cache.save(b"l", PAIR, token_count=1).outcome == "stored" and shelf.gone == [b"a"]
    assert budget.total_bytes == each
    assert shelf.account.put(b"b", 10)  # The cache's block goes to disk for it.
    cache.flush()
    assert cache.why(b"l") == "disk" and cache.load(b"l", promote=False).source == "disk"
