"""Two processes that end together, whoever ends first and however."""

import os
import signal
from pathlib import Path

from servers import common_options, complete, free_port, is_gone, poll


def test_sigterm_ends_both(build, start_kept):
    kept = start_kept(build)
    child, slots = kept.child(), kept.slot_directory()
    complete(kept, "Once upon a time")
    assert kept.end(signal.SIGTERM) == 0
    assert is_gone(child) and not slots.exists() and not slots.parent.exists()


def test_a_killed_kvkeep_leaves_no_server_and_the_next_one_cleans_up(build, start_kept):
    kept = start_kept(build)
    child, slots = kept.child(), kept.slot_directory()
    assert kept.end(signal.SIGKILL) == -signal.SIGKILL
    poll(lambda: is_gone(child))
    assert slots.parent.exists()
    start_kept(build)
    assert not slots.parent.exists()


def test_the_server_has_no_hold_on_the_port_of_kvkeep(any_build, start_kept):
    kept = start_kept(any_build)
    listening = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()
                 if line.split()[1].endswith(f":{kept.port:04X}")}
    held = {os.readlink(fd) for fd in Path(f"/proc/{kept.child()}/fd").iterdir()}
    assert listening and not held & {f"socket:[{inode}]" for inode in listening}


def test_a_killed_server_ends_kvkeep_with_its_status(build, start_kept):
    kept = start_kept(build)
    slots = kept.slot_directory()
    os.kill(kept.child(), signal.SIGKILL)
    assert kept.process.wait(60) == 128 + signal.SIGKILL
    assert "kvkeep: llama-server has ended: signal 9" in kept.said()
    assert not slots.parent.exists()


def test_the_port_is_free_again_at_once(any_build, launch, tmp_path):
    port = free_port()
    for _ in range(2):
        kept = launch("--dir", tmp_path / "store", "--", *any_build.command, *common_options(), "--port", port,
                      port=port)
        kept.wait_until_ready()
        complete(kept, "Once")  # A connection that was in use.
        assert kept.end() == 0
