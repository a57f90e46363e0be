"""Beginnings that fail say why in one line and end with a status that tells; some serve uncached."""

import os
import signal
import subprocess
import sys

import pytest

import servers
from servers import common_options, complete, free_port, poll, story


@pytest.fixture
def refused(launch):
    """Status and own lines of a kvkeep that ends by itself."""

    def run(*words, **variables):
        kept = launch(*words, **variables)
        status = kept.process.wait(servers.PATIENCE)
        return status, [line for line in kept.said().splitlines() if line.startswith("kvkeep:")]

    return run


@pytest.fixture
def script(tmp_path):
    """A program in the place of llama-server."""

    def make(text, mode=0o755):
        path = tmp_path / "server"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)
        return path

    return make


def test_a_server_that_is_not_there_is_127(refused, tmp_path):
    status, [line] = refused("--dir", tmp_path / "s", "--", tmp_path / "no-server", "-m", "m", "--port", free_port())
    assert status == 127
    assert "no-server: No such file or directory" in line and "give the path of llama-server" in line


def test_a_server_that_is_no_program_is_126(refused, script, tmp_path):
    status, [line] = refused("--dir", tmp_path / "s", "--", script("", mode=0o644), "-m", "m", "--port", free_port())
    assert status == 126 and "server: Permission denied" in line


def test_a_port_in_use_is_125(refused, script, taken_port, tmp_path):
    status, [line] = refused("--dir", tmp_path / "s", "--", script(""), "-m", "m", "--port", taken_port)
    assert status == 125
    assert f"127.0.0.1:{taken_port}: Address already in use" in line and "--port" in line


@pytest.mark.parametrize("end,status", [("exit 3", 3), ("exit 0", 0), ("kill -SEGV $$", 139)])
def test_a_server_that_ends_at_once_gives_its_status(refused, script, tmp_path, end, status):
    ended, lines = refused("--dir", tmp_path / "s", "--", script(end), "-m", "m", "--port", free_port())
    assert ended == status
    assert any("llama-server has ended: " in line for line in lines)


@pytest.fixture(scope="module")
def as_anybody():
    """What runs a program without the right to write everywhere, which root has."""
    if os.geteuid() != 0:
        return ()
    prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("root may write everywhere, and cannot give that up here")
    return prefix


def test_a_slot_directory_without_write_permission_is_named(refused, script, tmp_path, as_anybody):
    (tmp_path / "slots").mkdir(mode=0o500)
    check_slot_directory(refused, script, tmp_path, under=as_anybody)


def test_a_store_without_write_permission_is_served_without_it(any_build, launch, tmp_path, as_anybody):
    (tmp_path / "home").mkdir(mode=0o500)
    port = free_port()
    kept = launch("--dir", tmp_path / "home/store", "--", *any_build.command, *common_options(), "--port", port,
                  port=port, under=as_anybody)
    kept.wait_until_up()
    poll(lambda: kept.stats()["uncached"]["reason"] == "store")
    assert complete(kept, "Once upon a time").reason == "store"
    [line] = [line for line in kept.said().splitlines() if "serving without a store" in line]
    assert str(tmp_path / "home/store") in line and "give this user" in line and "--dir DIR" in line


def test_a_slot_directory_that_is_a_file_is_named(refused, script, tmp_path):
    (tmp_path / "slots").touch()
    check_slot_directory(refused, script, tmp_path)


def check_slot_directory(refused, script, tmp_path, **how):
    status, [line] = refused("--dir", tmp_path / "s", "--", script(""), "-m", "m", "--port", free_port(),
                             "--slot-save-path", tmp_path / "slots", **how)
    assert status == 125
    assert str(tmp_path / "slots") in line and "leave out --slot-save-path" in line


def test_tls_is_refused_with_the_way_out(refused, script, tmp_path):
    status, [line] = refused("--dir", tmp_path / "s", "--", script(""), "-m", "m", "--ssl-key-file", "k",
                             "--ssl-cert-file", "c", "--port", free_port())
    assert status == 125 and "--ssl-key-file" in line and "TLS proxy" in line


@pytest.mark.parametrize("words", [
    ["--max-size", "much", "--", "llama-server"],
    ["--no-such-option", "--", "llama-server"],
    ["--dir", "/tmp"],
    ["--attach", "http://127.0.0.1:1", "--", "llama-server"],
    ["--attach", "http://127.0.0.1:1"],
    ["--", "llama-server", "-m", "m", "--port", "many"],
    ["--", "llama-server", "-m"],
])
def test_wrong_options_are_one_line_and_status_2(refused, words):
    status, [line] = refused(*words)
    assert status == 2 and line.startswith("kvkeep: ")


def test_a_store_in_use_is_served_without_it(any_build, start_kept, launch, tmp_path):
    first = start_kept(any_build)
    port = free_port()
    second = launch("--dir", tmp_path / "store", "--", *any_build.command, *common_options(), "--port", port,
                    port=port)
    second.wait_until_up()
    poll(lambda: second.stats()["uncached"]["reason"] == "store")
    reply = complete(second, "Once upon a time")
    assert reply.reason == "store"
    line = next(line for line in second.said().splitlines() if "in use" in line)
    assert line.startswith("kvkeep: serving without a store: ")
    assert f"{tmp_path / 'store'} is in use by process {first.pid}" in line and "--dir DIR" in line


def test_a_server_that_cannot_save_slots_is_served_without_a_store(build, launch, tmp_path):
    old = tmp_path / "old-server"  # The same, without the option that it would not know.
    old.write_text(f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
at = words.index("--slot-save-path")
command = {list(build.command)!r}
os.execv(command[0], command + words[:at] + words[at + 2:])
""")
    old.chmod(0o755)
    port = free_port()
    kept = launch("--dir", tmp_path / "store", "--", old, *common_options(), "--port", port, port=port)
    kept.wait_until_up()
    poll(lambda: kept.stats()["uncached"]["reason"] == "old_server")
    reply = complete(kept, "Once upon a time")
    assert reply.reason == "old_server" and reply.timings["cache_n"] == 0
    [line] = [line for line in kept.said().splitlines() if "serving without a store" in line]
    assert "the server does not save slots" in line and "take a newer llama-server" in line
    assert kept.end() == 0


def test_a_server_that_does_not_tell_its_slots_saves_them_all_the_same(build, start_kept):
    kept = start_kept(build, "--no-slots")
    assert kept.get("/slots").status == 501
    prompt = story(1, 20)
    complete(kept, prompt)
    kept.forget_slots()
    assert complete(kept, prompt + " And then?").reason == "restored"


def test_a_server_of_several_models_is_served_without_a_store(v2, launch, tmp_path):
    port = free_port()
    kept = launch("--dir", tmp_path / "store", "--", *v2.command, "--port", port, port=port)
    kept.wait_until_up()
    assert kept.stats()["uncached"]["reason"] == "router"
    assert "serves several models (name one with -m to keep its prompts)" in kept.said()


def test_the_default_store_is_below_the_cache_directory(any_build, launch, tmp_path):
    port = free_port()
    kept = launch("--", *any_build.command, *common_options(), "--port", port, port=port,
                  XDG_CACHE_HOME=str(tmp_path / "cache"))
    kept.wait_until_ready()
    assert kept.stats()["store"]["dir"] == str(tmp_path / "cache" / "kvkeep" / "llama")
    assert kept.said().startswith(f"kvkeep: {tmp_path / 'cache' / 'kvkeep' / 'llama'}: ")
    modes = [os.stat(path).st_mode & 0o077 for path in (kept.slot_directory(), kept.stats()["store"]["dir"])]
    assert modes == [0, 0]
    assert kept.end(signal.SIGINT) == 0


def test_the_program_names_the_verb():
    said = subprocess.run([servers.PROGRAM, "llama", "--help"], capture_output=True, text=True, check=True)
    assert "kvkeep llama --max-size" in said.stdout
