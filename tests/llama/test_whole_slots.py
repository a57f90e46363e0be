"""Models whose state cannot be cut: slots are kept whole, and chats that go on find them."""

from concurrent import futures

import pytest

import servers
import stores
from servers import complete, said_by, story, tokens_of

pytest.importorskip("gguf", reason="gguf is missing (run: tools/install-deps python llama)")
import tiny_models  # noqa: E402


@pytest.fixture(scope="module")
def models(builds, tmp_path_factory):
    """Files by kind of state."""
    written = {}
    for kind, write in (("recurrent", tiny_models.write_mamba), ("window", tiny_models.write_gemma)):
        written[kind] = tmp_path_factory.mktemp("model") / f"{kind}.gguf"
        write(written[kind], servers.MODEL)
    return written


def held(reply):
    """Tokens that the slot holds after an answer; the last one was said and not computed."""
    timings = reply.timings
    return timings["cache_n"] + timings["prompt_n"] + timings["predicted_n"] - 1


def next_turn(server, reply, tokens):
    return tokens + reply.json()["tokens"] + tokens_of(server, "\nAnd then?")


def at_once(server, prompts):
    """What is said to prompts that are all sent at the same time."""
    with futures.ThreadPoolExecutor(len(prompts)) as threads:
        return list(threads.map(lambda tokens: said_by(complete(server, tokens)), prompts))


# Builds of version 2 do not go on from a restored sliding window, unless it is kept whole.
@pytest.mark.parametrize("kind,options", [("recurrent", ()), ("window", ("--swa-full",))])
def test_the_next_turn_is_restored_after_a_restart(build, models, kind, options, start_kept, start_plain):
    options = ("-m", models[kind], *options)
    plain = start_plain(build, *options)
    tokens = tokens_of(plain, story(3, 10))
    alone = complete(plain, tokens)
    more = next_turn(plain, alone, tokens)
    expected = complete(plain, more)
    plain.end()

    first = start_kept(build, *options)
    assert "this model's state cannot be cut" in first.said()
    reply = complete(first, tokens)
    assert said_by(reply) == said_by(alone) and reply.cached == 0
    assert first.end() == 0

    second = start_kept(build, *options)
    restored = complete(second, more)
    assert restored.cached == restored.timings["cache_n"] == held(reply)
    assert said_by(restored) == said_by(expected)
    assert second.stats()["requests"]["restored_tokens"] == held(reply)


def test_a_window_goes_on_from_a_checkpoint(v4, models, start_kept, start_plain):
    plain = start_plain(v4, "-m", models["window"])
    tokens = tokens_of(plain, story(3, 10))
    alone = complete(plain, tokens)
    expected = complete(plain, next_turn(plain, alone, tokens))
    plain.end()
    first = start_kept(v4, "-m", models["window"])
    reply = complete(first, tokens)
    first.end()
    second = start_kept(v4, "-m", models["window"])
    restored = complete(second, next_turn(second, reply, tokens))
    assert held(reply) // 2 < restored.timings["cache_n"] < held(reply) == restored.cached
    assert said_by(restored) == said_by(expected)
    assert second.stats()["requests"]["restored_tokens"] == restored.timings["cache_n"] + 1


def test_a_restored_window_that_the_server_computes_again_is_not_counted_as_restored(v2, models, start_kept):
    first = start_kept(v2, "-m", models["window"])
    reply = complete(first, tokens := tokens_of(first, story(3, 10)))
    first.end()
    second = start_kept(v2, "-m", models["window"])
    assert complete(second, next_turn(second, reply, tokens)).timings["cache_n"] == 0
    requests = second.stats()["requests"]
    assert requests["restored_tokens"] == 0 and requests["reasons"] == {"restore_unused": 1}
    assert "tokens restored: restore_unused (the server computed again what was restored)" in second.said()


def test_only_the_chat_that_goes_on_is_restored(build, models, start_kept):
    kept = start_kept(build, "-m", models["recurrent"])
    system = tokens_of(kept, story(3, 10))
    first = complete(kept, system + tokens_of(kept, "\nOne?"))
    kept.forget_slots()
    other = complete(kept, system + tokens_of(kept, "\nTwo?"))
    assert other.cached == other.timings["cache_n"] == 0 and other.reason == "absent"
    kept.forget_slots()
    shorter = complete(kept, system)
    assert shorter.cached == 0
    kept.forget_slots()
    again = complete(kept, next_turn(kept, first, system + tokens_of(kept, "\nOne?")))
    assert again.cached == again.timings["cache_n"] == held(first)


def test_what_another_chat_left_in_a_slot_is_not_taken_for_live(build, models, start_kept):
    kept = start_kept(build, "-m", models["recurrent"])
    system = tokens_of(kept, story(3, 10))
    complete(kept, system + tokens_of(kept, story(4, 4)), id_slot=0)
    kept.wait_until_stored()
    other = complete(kept, system + tokens_of(kept, story(5, 4)), id_slot=0)
    assert other.cached == other.timings["cache_n"] == 0 and other.reason == "absent"


def test_chats_over_two_slots_do_not_mix(build, models, start_kept, start_plain):
    options = ("-m", models["recurrent"])
    plain = start_plain(build, *options)
    chats = [tokens_of(plain, story(3, 10) + f"\n{number}?") for number in range(4)]
    answers = [complete(plain, tokens, id_slot=0) for tokens in chats]
    longer = [next_turn(plain, reply, tokens) for reply, tokens in zip(answers, chats)]
    expected = [said_by(complete(plain, tokens, id_slot=0)) for tokens in longer]
    plain.end()

    first = start_kept(build, *options)
    assert at_once(first, chats) == [said_by(reply) for reply in answers]
    first.end()
    second = start_kept(build, *options)
    for _ in range(2):  # From the store; then the same again, whatever the two slots hold by now.
        assert at_once(second, longer) == expected
        second.wait_until_stored()
    # Not all of them: there is room for two slot files at a time.
    assert second.stats()["requests"]["restored_tokens"] >= held(answers[0])


def test_why_says_that_another_build_stored_it(v2, v4, models, start_kept):
    options = ("-m", models["recurrent"])
    first = start_kept(v2, *options)
    reply = complete(first, tokens := tokens_of(first, story(3, 10)))
    more = next_turn(first, reply, tokens)
    first.wait_until_stored()
    assert first.post("/kvkeep/why", {"prompt": more}).json()["covered_tokens"] == held(reply)
    assert first.post("/kvkeep/why", {"prompt": tokens}).json()["reason"] == "absent"
    builds = [first.stats()["server"]["build"]]
    first.end()
    second = start_kept(v4, *options)
    builds.append(second.stats()["server"]["build"])
    answer = second.post("/kvkeep/why", {"prompt": more}).json()
    assert answer["covered_tokens"] == 0 and answer["reason"] == "build"
    assert answer["differences"][0] == {"name": "build", "stored": builds[0], "asked": builds[1]}
    assert f"the first {held(reply)} tokens" in answer["text"]
    for unknown in ({"prompt": tokens}, {"prompt": more, "cache_salt": "mine"}):
        assert second.post("/kvkeep/why", unknown).json()["reason"] == "absent"


def test_windows_that_are_kept_whole_are_told_from_others(v4, models, start_kept):
    first = start_kept(v4, "-m", models["window"], "--swa-full")
    reply = complete(first, tokens := tokens_of(first, story(3, 10)))
    more = next_turn(first, reply, tokens)
    first.end()
    second = start_kept(v4, "-m", models["window"])
    assert complete(second, more).timings["cache_n"] == 0
    answer = second.post("/kvkeep/why", {"prompt": more}).json()
    assert {"name": "swa-full", "stored": "true", "asked": ""} in answer["differences"]
    assert second.stats()["uncached"]["reason"] == ""


@pytest.mark.parametrize("damage", [stores.flip_a_byte, stores.truncate, stores.remove])
def test_a_damaged_slot_is_a_counted_miss(build, models, start_kept, tmp_path, damage):
    options = ("-m", models["recurrent"])
    first = start_kept(build, *options)
    tokens = tokens_of(first, story(3, 10))
    reply = complete(first, tokens)
    more = next_turn(first, reply, tokens)
    expected = said_by(complete(first, more, id_slot=0))
    first.end()
    for file in range(len(stores.block_files(tmp_path / "store"))):
        damage(stores.block_files(tmp_path / "store"), 0 if damage is stores.remove else file)
    second = start_kept(build, *options)
    answer = complete(second, more)
    assert answer.cached == answer.timings["cache_n"] == 0
    assert said_by(answer) == expected
    assert second.stats()["requests"]["reasons"] == {answer.reason: 1}
    assert answer.reason in ("damaged", "absent")


def test_a_slot_that_was_shifted_is_not_kept(build, models, start_kept):
    kept = start_kept(build, "-m", models["window"], "--swa-full", "-c", "512", "--context-shift")
    tokens = tokens_of(kept, story(3, 12))
    room = kept.stats()["server"]["slot_tokens"] - len(tokens)
    for n_predict, saves in ((room + 8, 0), (8, 1)):
        assert complete(kept, tokens, n_predict, ignore_eos=True).timings["predicted_n"] == n_predict
        kept.wait_until_stored()
        assert kept.stats()["requests"]["saves"] == saves
