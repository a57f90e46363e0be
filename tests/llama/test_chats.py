"""Chats over few slots: what the server forgets is restored, and the answers stay what they were."""

import pytest

from chats import Chat, answers_of, computed, hold
from servers import Q8


def test_the_first_answer_is_part_of_what_the_second_turn_restores(build, start_kept):
    chat = Chat(1, sentences=12)
    first = start_kept(build)
    reply = chat.ask(first, n_predict=80)
    question = reply.timings["prompt_n"] + reply.timings["cache_n"]
    whole = question + reply.timings["predicted_n"]
    assert whole // 64 > question // 64, "the answer is too short to fill a block"
    first.end()

    second = start_kept(build)
    reply = chat.ask(second)
    # The last token was said and not computed; how the template ends an answer may cost one block.
    assert question < reply.timings["cache_n"] <= whole
    assert reply.cached == reply.timings["cache_n"] and reply.cached % 64 == 0


def run_chats(start, restart, number, turns, **sizes):
    chats = [Chat(i, **sizes) for i in range(number)]
    server = start()
    hold(chats, server, turns // 2)
    if restart:
        server.end()
        server = start()
    hold(chats, server, turns - turns // 2)
    return chats, server


def test_four_chats_over_two_slots_and_a_restart_say_what_they_say_without_kvkeep(any_build, start_kept, start_plain):
    plain, server = run_chats(lambda: start_plain(any_build, *Q8), False, number=4, turns=3)
    server.end()
    kept, server = run_chats(lambda: start_kept(any_build, *Q8), True, number=4, turns=3)
    assert answers_of(kept) == answers_of(plain)
    assert computed(kept) < computed(plain)
    assert server.stats()["requests"]["server_failed"] == 0


@pytest.mark.long
def test_twenty_chats_of_five_turns_compute_a_third_of_the_tokens(build, start_kept, start_plain):
    plain, server = run_chats(lambda: start_plain(build, *Q8), False, number=20, turns=5, sentences=40)
    server.end()
    kept, server = run_chats(lambda: start_kept(build, *Q8), True, number=20, turns=5, sentences=40)
    print(f"prompt tokens computed: {computed(plain)} plain, {computed(kept)} kept")
    assert answers_of(kept) == answers_of(plain)
    assert 3 * computed(kept) <= computed(plain)
    assert server.stats()["requests"]["server_failed"] == 0
