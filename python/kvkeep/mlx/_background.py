"""Storing away from the thread that answers requests."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Callable, Dict

from .._values import StoreReport

log = logging.getLogger("kvkeep.mlx")


class BackgroundStorer:
    """Runs stores one after another on a thread of its own. What it cannot keep up with is dropped.

    What waits keeps the memory of its prompt caches, so few may wait.
    """

    def __init__(self, max_waiting: int = 4) -> None:
        self._waiting: "queue.Queue[Callable[[], StoreReport]]" = queue.Queue(max_waiting)
        self._lock = threading.Lock()
        self._counts = {"prompts_stored": 0, "prompts_dropped": 0, "prompts_refused": 0}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvkeep-store", daemon=True)
        self._thread.start()

    def submit(self, store: Callable[[], StoreReport]) -> bool:
        """False if there are too many already: then the prompt is not stored, and counted."""
        try:
            self._waiting.put_nowait(store)
        except queue.Full:
            self._count("prompts_dropped")
            log.warning("kvkeep: storing falls behind: a prompt was not stored")
            return False
        return True

    def refused(self, why: str) -> None:
        """Counts a prompt that was not stored for a reason other than time."""
        self._count("prompts_refused")
        log.warning("kvkeep: a prompt was not stored: %s", why)

    def close(self, timeout: float) -> None:
        """Lets what waits be stored, for so many seconds; the rest counts as dropped."""
        self._stop.set()
        self._thread.join(timeout)
        while not self._waiting.empty():
            self._waiting.get_nowait()
            self._count("prompts_dropped")

    def stats(self) -> Dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def _run(self) -> None:
        while not (self._stop.is_set() and self._waiting.empty()):
            try:
                store = self._waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            self._store(store)

    def _store(self, store: Callable[[], StoreReport]) -> None:
        started = time.perf_counter()
        try:
            report = store()
        except Exception as error:  # Must not end the thread: the next prompt may be stored.
            self.refused(str(error))
            return
        if report.refused is not None:
            self.refused(f"{report.refused}: {report.message}")
        else:
            self._count("prompts_stored")
        log.info("kvkeep: %d tokens are stored, %d blocks of them new, in %.0f ms", report.tokens,
                 report.stored_blocks, (time.perf_counter() - started) * 1e3)

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1
