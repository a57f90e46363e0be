import json
import os
import pathlib
import select
import socket
import subprocess
import time
import urllib.request

import pytest
from chromium import Chromium, find_chromium

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(os.environ.get("KVKEEP_PROGRAM", HERE.parent.parent / "build/dev/program/kvkeep"))
PATIENCE = 30  # Seconds.


class Kvkeep:
    """`kvkeep llama` in front of a small server that stands for a real one."""

    def __init__(self, scratch, *server_arguments, key=None):
        scratch.mkdir(exist_ok=True)
        self.scratch, self.key = scratch, key
        model = scratch / "tiny-<i>model-with-a-name-that-is-rather-long-Q4_K_M.gguf"
        model.write_bytes(b"weights")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        server = [HERE / "fake_llama_server.py", "-m", model, "--port", self.port, *server_arguments]
        self.process = subprocess.Popen(
            [str(word) for word in (PROGRAM, "llama", "--dir", scratch / "store", "--max-size", "64MB", "--", *server)],
            stderr=subprocess.PIPE, env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")})
        self.log = ""

    def wait_for_line(self, part):
        """Reads the log until a line has `part`."""
        deadline = time.monotonic() + PATIENCE
        while part not in self.log:
            readable, _, _ = select.select([self.process.stderr], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stderr.fileno(), 1 << 16).decode() if readable else ""
            assert piece, f"no line with {part!r} came:\n{self.log}"
            self.log += piece

    def ask(self, path, body=None):
        """(headers, JSON) of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data)
        if self.key is not None:
            request.add_header("authorization", "Bearer " + self.key)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.headers, json.loads(answer.read())

    def complete(self, prompt, **more):
        return self.ask("/completion", {"prompt": prompt, **more})

    def wait_until_stored(self):
        """Until blocks are stored, which happens after the answer."""
        deadline = time.monotonic() + PATIENCE
        while self.ask("/kvkeep/stats")[1]["requests"]["blocks_stored"] == 0:
            assert time.monotonic() < deadline, "nothing was stored"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


@pytest.fixture
def start(tmp_path):
    """start(name, *arguments of the server, key=None): a running kvkeep that is ready."""
    started = []

    def start_one(name="one", *arguments, key=None):
        started.append(Kvkeep(tmp_path / name, *arguments, key=key))
        started[-1].wait_for_line("ready: ")
        return started[-1]

    yield start_one
    for kvkeep in started:
        kvkeep.stop()


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory):
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium here")
    chromium = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture
def browser(one_browser):
    """A browser that has nothing to remember of an earlier test but its cache."""
    one_browser.forget()
    return one_browser
