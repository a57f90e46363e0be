"""Disks without room: requests are answered, and what cannot be stored is said and counted."""

import contextlib
import os
import pathlib
import subprocess
import threading

import pytest

from servers import Q8, common_options, complete, free_port, poll, said_by, story, tokens_of


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB: mounted for all to see, or where only root may do that, in a namespace of its own."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=8m", "kvkeep-test", str(path))
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield path
        subprocess.run(["umount", "-l", path], check=True)
        return
    in_own = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", '"$@" && echo mounted && exec cat', "sh")
    holder = subprocess.Popen(["sh", "-c", 'exec "$@"', "sh", *in_own, *mount], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with holder:  # The end of its input ends it, and the file system with it.
        if (said := holder.stdout.readline()) != "mounted\n":
            pytest.skip("no file system may be mounted here: " + said.strip())
        yield pathlib.Path(f"/proc/{holder.pid}/root{path}")


def fill(disk):
    """Takes all the room that is left."""
    file = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, bytes(4096))
    os.close(file)


@contextlib.contextmanager
def filled(disk):
    """While this lasts, others take what is given back as soon as they see it; then they leave."""
    done = threading.Event()

    def take():
        while not done.wait(0.002):
            fill(disk)

    fill(disk)
    taker = threading.Thread(target=take)
    taker.start()
    try:
        yield
    finally:
        done.set()
        taker.join()
        (disk / "ballast").unlink()


def ask_all(kept, prompts):
    kept.forget_slots()
    return [said_by(complete(kept, prompt)) for prompt in prompts]


def store_of(kept):
    return kept.stats()["store"]["cache"]


def room_of(store):
    """What its files and directories occupy."""
    return sum(path.lstat().st_blocks * 512 for path in (store, *store.rglob("*")))


def limit_is_held(kept, store):
    said = store_of(kept)
    return said["pending_blocks"] == 0 and max(said["allocated_bytes"], room_of(store)) <= said["max_size_bytes"]


def refusals(kept):
    return store_of(kept)["save_refused"]


def test_a_disk_that_fills_up_and_has_room_again(any_build, start_kept, small_disk):
    store = small_disk / "store"
    kept = start_kept(any_build, *Q8, store=store, own=("--hot-size", "0"))
    prompts = [tokens_of(kept, story(number * 5))[:200] for number in range(5)]
    expected = ask_all(kept, prompts)  # More than the disk has room for.
    kept.wait_until_stored()
    assert store_of(kept)["evictions"] > 0
    poll(lambda: limit_is_held(kept, store))
    with filled(small_disk):
        for _ in range(4):  # The store gives way for a while before it has nothing more to give.
            assert ask_all(kept, prompts) == expected
            if refusals(kept)["no_space"] + refusals(kept)["too_large"] > 0:
                break
        else:
            pytest.fail(f"nothing was refused: {store_of(kept)}")
    assert kept.stats()["requests"]["server_failed"] == 0
    assert kept.stats()["uncached"]["reason"] == ""
    assert kept.end() == 0
    again = start_kept(any_build, *Q8, store=store, own=("--hot-size", "0"))
    for _ in range(2):
        assert ask_all(again, prompts[:1]) == expected[:1]
    assert again.stats()["requests"]["restores"] > 0
    poll(lambda: limit_is_held(again, store))
    assert again.end() == 0


def test_a_disk_that_is_full_from_the_beginning_is_said_and_served(any_build, launch, small_disk):
    fill(small_disk)
    port = free_port()
    kept = launch("--dir", small_disk / "store", "--max-size", "1GB", "--", *any_build.command, *common_options(),
                  "--port", port, port=port)
    kept.wait_until_up()
    poll(lambda: kept.stats()["uncached"]["reason"] not in ("loading", "digesting"))
    reply = complete(kept, story(1, 20))
    kept.wait_until_stored()
    assert reply.timings["cache_n"] == 0
    assert store_of(kept)["num_files"] == 0 and refusals(kept)["too_large"] == 1
    assert "stored up to token 0: " in kept.said() and "the nearly full disk leaves room for 0 B" in kept.said()
    [line] = [line for line in kept.said().splitlines() if "disk pressure" in line]
    assert "only 0 B of the configured 1.00GB" in line and "disk nearly full: 0 B free" in line
    assert "make room, or take a directory on another disk" in line
    assert kept.end() == 0


def test_a_slot_directory_without_room_is_said_and_served(any_build, start_kept, small_disk):
    slots = small_disk / "slots"
    slots.mkdir()
    kept = start_kept(any_build, *Q8, "--slot-save-path", slots)
    prompt = tokens_of(kept, story(1))[:300]
    expected = said_by(complete(kept, prompt))
    kept.wait_until_stored()
    assert kept.stats()["requests"]["saves"] == 1
    fill(small_disk)
    kept.forget_slots()
    reply = complete(kept, prompt)
    assert said_by(reply) == expected and reply.timings["cache_n"] == 0 and reply.reason == "slot_dir_full"
    assert kept.stats()["requests"]["server_failed"] == 0
