"""Prompts that outlive the server and kvkeep."""

import pytest

from servers import Q8, complete, said_by, story, tokens_of

QUESTION = "\nQuestion: which train carried the salt?\nAnswer:"
PROMPT, REUSED = 1000, 960  # Tokens; what is reused are whole blocks of 64.


def prompt_and_question(server):
    tokens = tokens_of(server, story())[:PROMPT]
    assert len(tokens) == PROMPT
    return tokens, tokens + tokens_of(server, QUESTION)


@pytest.mark.parametrize("options", [(), Q8], ids=["f16", "q8_0"])
def test_a_prompt_is_restored_after_both_were_restarted(build, options, start_kept, start_plain):
    plain = start_plain(build, *options)
    prompt, asked = prompt_and_question(plain)
    # The other server's slot comes to hold the same 960 tokens, computed in pieces of the same length.
    complete(plain, prompt[:REUSED] + tokens_of(plain, story(7))[: PROMPT - REUSED])
    unbroken = complete(plain, asked)
    assert unbroken.timings["cache_n"] == REUSED
    if options == Q8:  # Then a cold run says the same.
        alone = complete(plain, asked, cache_prompt=False)
        assert alone.timings["cache_n"] == 0 and said_by(alone) == said_by(unbroken)
    plain.end()

    first = start_kept(build, *options)
    cold = complete(first, prompt)
    assert cold.timings["cache_n"] == 0
    assert first.end() == 0

    second = start_kept(build, *options)
    restored = complete(second, asked)
    assert restored.timings["cache_n"] == restored.cached == REUSED
    assert restored.timings["prompt_n"] == len(asked) - REUSED <= PROMPT + 64 - REUSED
    assert said_by(restored) == said_by(unbroken)
    assert f"960 of {len(asked):,} tokens restored in " in second.said()
    assert second.end() == 0
    assert "kvkeep: saved 960 prompt tokens, about " in second.said()
