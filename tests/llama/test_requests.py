"""What clients may ask for, and what kvkeep says of it."""

import json

import pytest

from servers import (
    PROGRAM, Q8, Kept, common_options, complete, completion, free_port, said_by, story, tokens_of)

CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
IMAGE = {"messages": [{"role": "user", "content": [
    {"type": "text", "text": "What is it?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}], "max_tokens": 4}


@pytest.fixture(scope="module")
def served(builds, tmp_path_factory, cache_home):
    """One kvkeep for all tests that leave nothing behind."""
    build = next(found for found in builds.values() if found is not None)
    home, port = tmp_path_factory.mktemp("served"), free_port()
    kept = Kept([PROGRAM, "llama", "--dir", home / "store", "--max-size", "1GB", "--",
                 *build.command, *common_options(), "--port", port],
                home / "log", port, XDG_CACHE_HOME=str(cache_home))
    yield kept.wait_until_ready()
    kept.stop()


@pytest.mark.parametrize("path,body,reason", [
    ("/v1/chat/completions", IMAGE, "images"),
    ("/completion", completion("Hello", 2, cache_prompt=False), "cache_prompt"),
    ("/completion", completion("Hello", 2, lora=[]), "lora"),
    ("/completion", completion(["Hello", "Good day"], 2), "several_prompts"),
    ("/v1/chat/completions", {**CHAT, "n": 2}, "several_prompts"),
    ("/completion", {"n_predict": 2}, "no_prompt"),
])
def test_what_cannot_be_kept_is_counted_by_reason(served, path, body, reason):
    before = served.stats()["requests"]["reasons"].get(reason, 0)
    reply = served.post(path, body)
    assert (reply.reason, reply.cached) == (reason, 0)
    assert served.stats()["requests"]["reasons"][reason] == before + 1


def test_a_client_can_keep_its_prompt_out_of_the_store(served):
    tokens = tokens_of(served, story(40, 20))
    served.post("/completion", completion(tokens, 2), **{"x-kvkeep-store": "off"})
    served.forget_slots()
    assert served.post("/kvkeep/why", {"prompt": tokens}).json()["covered_tokens"] == 0
    complete(served, tokens, 2)
    served.forget_slots()
    answer = served.post("/kvkeep/why", {"prompt": tokens}).json()
    assert answer["covered_tokens"] == len(tokens) // 64 * 64
    assert served.post("/kvkeep/why", {"prompt": tokens, "cache_salt": "mine"}).json()["covered_tokens"] == 0


def test_own_pages(served):
    assert served.get("/kvkeep/").headers["content-type"].startswith("text/html")
    assert b"kvkeep_llama_restored_tokens_total" in served.get("/kvkeep/metrics").body
    assert served.get("/kvkeep/nothing").status == 404
    assert served.post("/kvkeep/stats", {}).status == 405


def test_errors_of_the_server_reach_the_client(served):
    for body in (b"{", b"[]", json.dumps({"prompt": "A", "n_predict": "many", "id_slot": 77}).encode()):
        reply = served.ask("POST", "/completion", body, **{"Content-Type": "application/json"})
        assert reply.status >= 400 and "error" in reply.json()


def streamed(server, body):
    """The events of a streamed answer, without what differs from one run to the next."""
    events = []
    for line in server.post("/v1/chat/completions", {**body, "stream": True}).body.split(b"\n\n"):
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            events.append({k: v for k, v in event.items() if k not in ("id", "created", "timings")})
        else:
            events.append(line)
    return events


def test_a_stream_of_a_real_server_is_the_same(build, start_plain, start_kept):
    body = {**CHAT, "max_tokens": 24}
    plain = streamed(start_plain(build, *Q8), body)
    assert streamed(start_kept(build, *Q8), body) == plain and len(plain) > 10


def test_an_api_key_guards_the_pages_too(build, start_kept):
    key = {"Authorization": "Bearer secret"}
    kept = start_kept(build, "--api-key", "secret", ready_with=key)
    assert kept.get("/kvkeep/stats").status == 401
    assert kept.get("/kvkeep/stats", **key).status == 200
    assert kept.post("/kvkeep/why", CHAT).status == 401
    assert kept.post("/v1/chat/completions", CHAT).status == 401
    assert kept.post("/v1/chat/completions", CHAT, Authorization="Bearer wrong").status == 401
    assert kept.post("/v1/chat/completions", CHAT, **key).status == 200


def test_an_openai_client_works_unchanged(build, start_kept):
    openai = pytest.importorskip("openai", reason="run: tools/install-deps python llama")
    kept = start_kept(build, *Q8)
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{kept.port}/v1", api_key="none", max_retries=0)
    messages = [{"role": "system", "content": story(3, 12)}, {"role": "user", "content": "What is this about?"}]
    asked = {"model": "any", "messages": messages, "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    text = whole.choices[0].message.content
    assert text and whole.usage.prompt_tokens > 128
    kept.forget_slots()

    pieces = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    pieces = list(pieces)
    assert "".join(p.choices[0].delta.content or "" for p in pieces if p.choices) == text
    assert pieces[-1].usage.prompt_tokens_details.cached_tokens >= 128
    with pytest.raises(openai.APIStatusError):
        client.chat.completions.create(model="any", messages=[{"role": 5}])
    assert client.models.list().data
    assert client.completions.create(model="any", prompt="Once upon", max_tokens=4, temperature=0).choices[0].text


def test_another_build_on_the_same_store_finds_nothing_and_says_why(v2, v4, start_kept, start_plain):
    first = start_kept(v2, *Q8)
    tokens = tokens_of(first, story(9))[:300]
    complete(first, tokens)
    first.end()

    second = start_kept(v4, *Q8)
    answer = second.post("/kvkeep/why", {"prompt": tokens}).json()
    assert (answer["covered_tokens"], answer["reason"]) == (0, "build")
    assert any(difference["name"] == "build" for difference in answer["differences"])
    reply = complete(second, tokens)
    assert reply.cached == reply.timings["cache_n"] == 0
    assert said_by(reply) == said_by(complete(start_plain(v4, *Q8), tokens))
    said = second.said()
    assert "of this model's blocks are of build" in said and "they leave first" in said and "kvkeep rm " in said
