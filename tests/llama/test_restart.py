"""Prompts that outlive the server and kvkeep."""

import pytest

from servers import Q8, complete, said_by, story, tokens_of

QUESTION = "\nQuestion: which train carried the salt?\nAnswer:"
# Tokens of the prompt by version of the slot files, and those of them in whole blocks of 64, which are reused.
# The prebuilt server of version 4 computes a fifth as fast.
PROMPT = {"v2": (1000, 960), "v4": (300, 256)}


def prompt_and_question(server, length):
    tokens = tokens_of(server, story())[:length]
    assert len(tokens) == length
    return tokens, tokens + tokens_of(server, QUESTION)


@pytest.mark.parametrize("options", [(), Q8], ids=["f16", "q8_0"])
def test_a_prompt_is_restored_after_both_were_restarted(build, options, start_kept, start_plain):
    plain = start_plain(build, *options)
    length, reused = PROMPT[build.version]
    prompt, asked = prompt_and_question(plain, length)
    # The other server's slot comes to hold the same tokens, computed in pieces of the same length.
    complete(plain, prompt[:reused] + tokens_of(plain, story(7))[: length - reused])
    unbroken = complete(plain, asked)
    assert unbroken.timings["cache_n"] == reused
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
    assert restored.timings["cache_n"] == restored.cached == reused
    assert restored.timings["prompt_n"] == len(asked) - reused <= length + 64 - reused
    assert said_by(restored) == said_by(unbroken)
    assert f"{reused} of {len(asked):,} tokens restored in " in second.said()
    assert second.end() == 0
    assert f"kvkeep: saved {reused} prompt tokens, about " in second.said()
