"""Blocks that were changed on disk: the answer is right, and what is lost is computed again."""

import contextlib
import random
import struct
import threading

import pytest

import stores
from servers import Q8, complete, poll, said_by, story, tokens_of

PROMPT, DAMAGED, BLOCK = 600, 5, 64  # Nine whole blocks; the sixth is damaged.
DAMAGES = [stores.flip_a_byte, stores.truncate, stores.swap_with_the_next, stores.remove]


@pytest.fixture
def prompt():
    return lambda server: tokens_of(server, story(5))[:PROMPT]


def misses(kept):
    return kept.stats()["requests"]["reasons"]


def miss_of(reply):
    """The counted reason; a block that was never there is not worth a header where others were restored."""
    return "absent" if reply.reason == "restored" else reply.reason


def test_a_block_damaged_while_kvkeep_runs_is_a_counted_miss(build, start_kept, tmp_path, prompt):
    kept = start_kept(build, *Q8, own=("--hot-size", "0"))  # Blocks are on disk only.
    expected = said_by(complete(kept, prompt(kept)))
    for damage in DAMAGES:
        kept.forget_slots()
        poll(lambda: kept.stats()["store"]["cache"]["pending_blocks"] == 0)
        before = misses(kept)
        damage(stores.chain(tmp_path / "store"), DAMAGED)
        reply = complete(kept, prompt(kept))
        assert said_by(reply) == expected, damage
        assert reply.cached == reply.timings["cache_n"] == DAMAGED * BLOCK, damage
        assert misses(kept)[miss_of(reply)] == before.get(miss_of(reply), 0) + 1, damage
        kept.forget_slots()
        whole = complete(kept, prompt(kept))
        assert said_by(whole) == expected and whole.cached == PROMPT // BLOCK * BLOCK, damage


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_block_damaged_between_two_runs_is_a_counted_miss(any_build, start_kept, tmp_path, prompt, damage):
    first = start_kept(any_build, *Q8)
    expected = said_by(complete(first, prompt(first)))
    first.end()
    damage(stores.chain(tmp_path / "store"), DAMAGED)
    second = start_kept(any_build, *Q8)
    reply = complete(second, prompt(second))
    assert said_by(reply) == expected
    assert reply.cached == reply.timings["cache_n"] == DAMAGED * BLOCK
    assert misses(second) == {miss_of(reply): 1}


def test_blocks_damaged_at_any_moment_never_show(any_build, start_kept, tmp_path):
    kept = start_kept(any_build, *Q8, own=("--hot-size", "0"))
    prompts = [tokens_of(kept, story(number * 5))[:200] for number in range(4)]
    expected = [said_by(complete(kept, prompt)) for prompt in prompts]
    done, chance, damages = threading.Event(), random.Random(1), 0

    def spoil():
        nonlocal damages
        while not done.wait(0.005):
            files = stores.block_files(tmp_path / "store")
            if len(files) < 2:
                continue
            with contextlib.suppress(OSError, IndexError, struct.error):  # Somebody was quicker.
                chance.choice(DAMAGES)(files, chance.randrange(len(files) - 1))
                damages += 1

    spoiler = threading.Thread(target=spoil)
    spoiler.start()
    try:
        for turn in range(12):
            number = turn % len(prompts)
            assert said_by(complete(kept, prompts[number])) == expected[number], turn
    finally:
        done.set()
        spoiler.join()
    reasons = misses(kept)
    assert damages > 12 and reasons.get("damaged", 0) + reasons.get("absent", 0) > 0
    assert kept.stats()["uncached"]["reason"] == ""


def test_the_same_damage_without_the_check_changes_the_answer(build, start_plain, tmp_path, prompt):
    slots = tmp_path / "slots"
    slots.mkdir()
    plain = start_plain(build, "--slot-save-path", slots)
    tokens = prompt(plain)
    cut = PROMPT // BLOCK * BLOCK
    complete(plain, tokens[:cut], n_predict=1, id_slot=0)
    assert plain.post("/slots/0?action=save", {"filename": "whole"}).status == 200

    def answer():
        assert plain.post("/slots/0?action=restore", {"filename": "whole"}).status == 200
        reply = complete(plain, tokens, id_slot=0)
        assert reply.timings["cache_n"] == cut
        return said_by(reply)

    whole = answer()
    assert answer() == whole
    stores.spoil_slot_file(slots / "whole", build.version, 2, DAMAGED * BLOCK, (DAMAGED + 1) * BLOCK)
    assert answer() != whole
