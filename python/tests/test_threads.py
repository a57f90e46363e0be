"""Calls release the GIL while they work, and Ctrl-C ends a long wait."""

import subprocess
import sys
import threading

import numpy as np
import pytest

BLOCK = [(np.zeros(1 << 19, np.float32), np.zeros(1 << 19, np.float32))]


@pytest.fixture
def no_preemption():
    """From here on a thread gets the GIL only when another one gives it up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    yield
    sys.setswitchinterval(before)


def lets_others_run(call):
    """True if another thread ran during one of many calls, False if they all kept the GIL."""
    go, ran = threading.Lock(), []
    go.acquire()
    ready = threading.Event()

    def other():
        ready.set()
        with go:
            ran.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()  # Comes back once the other thread waits for `go`: only then it gives the GIL up.
    go.release()
    for _ in range(10000):
        call()
        if ran:
            break
    during = bool(ran)
    thread.join()
    return during


def test_the_check_sees_a_call_that_keeps_the_gil(no_preemption):
    assert not lets_others_run(lambda: sum(range(100)))


def test_calls_release_the_gil(open_cache, tmp_path, no_preemption):
    cache = open_cache(tmp_path / "cold", hot_size=0)
    hot = open_cache(tmp_path / "hot", preload_min_blocks=1)
    for each in (cache, hot):
        assert each.save(b"k", BLOCK, token_count=1)
        each.flush()

    def save():
        cache.save(b"new", BLOCK, token_count=1)
        cache.delete(b"new")

    def preload():
        hot.clear_hot()
        assert hot.preload([b"k"]) == 1

    calls = {
        "save and delete": save,
        "load": lambda: cache.load(b"k"),
        "load_many": lambda: cache.load_many([b"k"]),
        "load_each": lambda: cache.load_each([b"k"]),
        "preload": preload,
        "flush": cache.flush,
        "close": cache.close,
    }
    assert [name for name, call in calls.items() if not lets_others_run(call)] == []


# The thread that writes is held up by a signal whose handler waits for another signal.
INTERRUPTED = """
import ctypes, functools, os, select, signal, sys, threading
import kvkeep

libc = ctypes.CDLL(None)
for number, handler in ((signal.SIGUSR1, libc.pause), (signal.SIGUSR2, libc.getpid)):
    libc.signal(number, ctypes.cast(handler, ctypes.c_void_p))

def threads():
    return set(map(int, os.listdir("/proc/self/task")))

# A process that was started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
before = threads()
cache = kvkeep.BlockCache(sys.argv[1], max_size="1GB", hot_size=0)
writers = threads() - before
assert writers

# A thread that is stopped between being woken and leaving its wait would hold up whoever wakes it next.
def is_waiting(thread):
    with open(f"/proc/self/task/{thread}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"

while not all(map(is_waiting, writers)):
    select.select([], [], [], 0.001)

def tell_writers(number):
    for thread in writers:
        assert libc.tgkill(os.getpid(), thread, number) == 0

sys.setswitchinterval(3600)  # From here on another thread runs only while a call has released the GIL.
main = threading.main_thread()
def ctrl_c(where):
    while sys._current_frames()[main.ident].f_code.co_name != where:
        select.select([], [], [], 0)
    signal.pthread_kill(main.ident, signal.SIGINT)

def interrupted(call):
    def waits_here():
        call()
    other = threading.Thread(target=ctrl_c, args=["waits_here"])
    other.start()
    try:
        waits_here()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        other.join()

tell_writers(signal.SIGUSR1)
cache.save(b"k", [(b"a", b"b")], token_count=1)
assert interrupted(cache.flush)
assert interrupted(functools.partial(cache.flush, timeout=1000))
assert cache.load(b"k").source == "pending"
assert interrupted(functools.partial(cache.close, timeout=1000))
tell_writers(signal.SIGUSR2)
report = cache.close()
assert not report.failed and not report.abandoned, report
"""


def test_ctrl_c_ends_a_wait_and_the_work_goes_on(open_cache, tmp_path):
    store = tmp_path / "store"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, store], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert open_cache().load(b"k").source == "disk"
