"""SharedHotCacheBudget: one limit of RAM for several managers, and for other holders of blocks."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from .._kvkeep import BudgetOwner, HotBudget

__all__ = ["SharedHotCacheBudget"]

logger = logging.getLogger(__name__)

Victim = Tuple[Any, bytes]


class _Collected(threading.local):
    """Blocks that the put() running on this thread has displaced; None where none is running."""

    victims: Optional[List[Victim]] = None


class _Account:
    """What one holder that is no manager has on account of the budget."""

    def __init__(self, budget: HotBudget, owner: Any, collected: _Collected) -> None:
        self.owner = _reference(owner)
        self.blocks = BudgetOwner(budget, _give_up(self.owner, collected))


class _Accounts:
    """The accounts of objects that are alive, by identity."""

    def __init__(self) -> None:
        self._by_id: Dict[int, _Account] = {}
        self._lock = threading.Lock()

    def of(self, owner: Any, open_account: Callable[[], _Account]) -> _Account:
        with self._lock:
            account = self._by_id.get(id(owner))
            if account is None:
                account = self._by_id[id(owner)] = open_account()
                _when_gone(owner, self._by_id.pop, id(owner), None)
            return account

    def all(self) -> List[_Account]:
        return list(self._by_id.values())


def _reference(owner: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:  # Text and plain objects cannot be held weakly.
        return lambda: owner


def _when_gone(owner: Any, call: Callable[..., Any], *arguments: Any) -> None:
    try:
        weakref.finalize(owner, call, *arguments).atexit = False
    except TypeError:
        pass  # The account keeps it.


def _give_up(reference: Callable[[], Any], collected: _Collected) -> Callable[[bytes], bool]:
    """What the budget calls for room. It holds no reference to the account, so that this can end."""

    def give_up(block_hash: bytes) -> bool:
        owner = reference()
        if owner is None:
            return True
        if collected.victims is not None:  # The caller of put() lets it go.
            collected.victims.append((owner, block_hash))
            return True
        let_go = getattr(owner, "on_budget_eviction", None)
        if let_go is None:
            return False
        let_go(block_hash)
        return True

    return give_up


class SharedHotCacheBudget:
    """One limit of RAM, and one order of last use, for the hot tiers of several managers.

    Managers are given it as hot_cache_budget and keep their own account; their bytes are those that
    blocks really occupy. put(), touch(), forget() and forget_owner() are for other objects that hold
    blocks, and are told of an eviction that they did not cause by a method on_budget_eviction(block_hash);
    blocks of an object without it stay. Objects are held weakly. Safe from any thread.

    max_bytes: a negative limit counts as 0.
    """

    def __init__(self, max_bytes: int) -> None:
        self.shared = HotBudget(max(0, int(max_bytes)))
        """What managers of this budget open their cache with."""
        self._lock = threading.Lock()
        self._managers: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._accounts = _Accounts()
        self._collected = _Collected()

    @property
    def max_bytes(self) -> int:
        return self.shared.max_bytes

    @property
    def total_bytes(self) -> int:
        """Held by everybody now."""
        return self.shared.total_bytes

    @property
    def remaining_bytes(self) -> int:
        """max_bytes - total_bytes, never below 0."""
        return self.shared.remaining_bytes

    def put(self, owner: Any, block_hash: bytes, size_bytes: int) -> List[Victim]:
        """Charges a block, most recent, in place of an earlier one of this owner and hash.

        Returns the blocks of other holders that left for it, in that order, for the caller to let go;
        blocks of managers have left by themselves. Where managers could not make enough room, nothing is
        charged and the last victim is the block itself. May wait for a full write queue.
        TypeError: the owner is a manager.
        """
        account = self._account_of(owner)
        outer, self._collected.victims = self._collected.victims, []
        try:
            stored = account.blocks.put(block_hash, size_bytes)
            victims = self._collected.victims
        finally:
            self._collected.victims = outer
        return victims if stored else [*victims, (owner, block_hash)]

    def touch(self, owner: Any, block_hash: bytes) -> None:
        """Makes a block the most recent, if it is held."""
        self._account_of(owner).blocks.touch(block_hash)

    def forget(self, owner: Any, block_hash: bytes) -> None:
        """The block is gone."""
        self._account_of(owner).blocks.forget(block_hash)

    def forget_owner(self, owner: Any) -> None:
        """All blocks of the owner are gone."""
        self._account_of(owner).blocks.forget_all()

    def clear_all_owners(self) -> int:
        """Has every owner clear its hot tier, once; returns the sum of what their clear_hot_cache() say.

        An owner that fails is logged, and keeps its charge. Blocks of managers that are not on disk yet go
        there; see PagedSSDCacheManager.clear_hot_cache().
        """
        with self._lock:
            managers = list(self._managers)
        cleared = sum(_clear(manager) or 0 for manager in managers)
        for account in self._accounts.all():
            count = _clear(account.owner())
            if count is not None:
                account.blocks.forget_all()
                cleared += count
        return cleared

    def shrink_to(
        self, target_bytes: int, protected_hashes: Optional[Iterable[bytes]] = None
    ) -> int:
        """Gives up least recently used blocks of everybody until those held take at most `target_bytes`.

        Blocks in `protected_hashes` stay. Blocks of managers that are not on disk yet go there; one that
        finds the write queue full stays. Returns the bytes freed. May wait for a full write queue.
        """
        return self.shared.shrink_to(max(0, int(target_bytes)), keep=list(protected_hashes or ()))

    def join(self, manager: Any) -> None:
        """A manager says that it uses this budget."""
        with self._lock:
            self._managers.add(manager)

    def leave(self, manager: Any) -> None:
        """The manager is closed."""
        with self._lock:
            self._managers.discard(manager)

    def _account_of(self, owner: Any) -> _Account:
        with self._lock:
            if any(manager is owner for manager in self._managers):
                raise TypeError("owner: a manager keeps its own account")
        return self._accounts.of(owner, lambda: _Account(self.shared, owner, self._collected))


def _clear(owner: Any) -> Optional[int]:
    """How many blocks the owner cleared; None if it failed or is gone."""
    if owner is None:
        return None
    try:
        return int(owner.clear_hot_cache())
    except Exception:  # The others still have to be cleared.
        logger.warning("the hot tier of %r could not be cleared", owner, exc_info=True)
        return None
