"""Disks without room: requests are answered, and what cannot be stored is said and counted."""

import contextlib
import os
import subprocess

import pytest

from servers import Q8, common_options, complete, free_port, poll, said_by, story, tokens_of

MB = 1 << 20


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 12 MB, where the tests may mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "kvkeep-test", path], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no file system may be mounted here: " + mounted.stderr.decode().strip())
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk):
    """Takes all the room that is left."""
    path = disk / "ballast"
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, bytes(4096))
    os.close(file)
    return path


def ask_all(kept, prompts):
    kept.forget_slots()
    return [said_by(complete(kept, prompt)) for prompt in prompts]


def test_a_disk_that_fills_up_and_has_room_again(any_build, start_kept, small_disk):
    kept = start_kept(any_build, *Q8, store=small_disk / "store", own=("--hot-size", "0"))
    prompts = [tokens_of(kept, story(number * 5))[:300] for number in range(5)]
    expected = ask_all(kept, prompts)  # More than the disk has room for.
    kept.wait_until_stored()
    assert kept.stats()["store"]["cache"]["evictions"] > 0
    ballast = fill(small_disk)
    assert ask_all(kept, prompts) == expected
    assert kept.stats()["requests"]["server_failed"] == 0
    assert kept.stats()["uncached"]["reason"] == ""
    ballast.unlink()
    assert ask_all(kept, prompts[:1]) == expected[:1]

    def is_restored():
        kept.forget_slots()
        return complete(kept, prompts[0]).cached > 0

    poll(is_restored)
    assert kept.end() == 0


def test_a_disk_that_is_full_from_the_beginning_is_said_and_served(any_build, launch, small_disk):
    fill(small_disk)
    port = free_port()
    kept = launch("--dir", small_disk / "store", "--", *any_build.command, *common_options(), "--port", port, port=port)
    kept.wait_until_up()
    poll(lambda: kept.stats()["uncached"]["reason"] not in ("loading", "digesting"))
    reply = complete(kept, story(1, 20))
    kept.wait_until_stored()
    assert reply.timings["cache_n"] == 0
    [line] = [line for line in kept.said().splitlines() if "disk pressure" in line]
    assert "only 0 B of" in line and "disk nearly full: 0 B free" in line and "make room, or take a directory" in line
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
