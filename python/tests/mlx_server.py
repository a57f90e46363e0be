"""A server process with SmolLM2, and chats with it."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from dataclasses import asdict, dataclass, field

from conftest import ROOT

sys.path.append(str(ROOT / "python" / "demo"))
from environment import environment

MODEL = ROOT / "build" / "models" / "smollm2"
BLOCK_SIZE = 64
KEPT = ["-m", "kvkeep.mlx.server"]
PLAIN = ["-c", "from mlx_lm.server import main; main()"]
SYSTEM = (
    "You are the guide of a small railway museum. Visitors ask you about the collection, and you answer "
    "in one short sentence, politely, without lists. The museum keeps three locomotives: the Heron, "
    "built in 1868, which pulled mail trains along the coast; the Badger, built in 1901, which worked in "
    "a coal mine; and the Swift, built in 1937, which still runs on Sundays. Tickets cost four coins, "
    "children enter for free, and the doors are open from nine in the morning until five in the afternoon, "
    "except on Mondays. The cafe beside the turntable serves soup, bread and tea."
)
QUESTIONS = [
    "What does a ticket cost?",
    "Which locomotive is the oldest?",
    "What does the cafe serve?",
    "When was the Swift built?",
    "On which day is the museum closed?",
]


def make_model():
    """The folder that mlx-lm loads; made once."""
    subprocess.run([ROOT / "tools" / "make_mlx_model", MODEL], check=True, env=environment())


def make_model_with_windows(folder):
    """Random weights and sliding windows; the tokenizer of the other one."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models import llama

    shutil.copytree(MODEL, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    arguments = llama.ModelArgs(
        model_type="llama", hidden_size=128, num_hidden_layers=4, intermediate_size=256,
        num_attention_heads=2, num_key_value_heads=1, head_dim=64, rms_norm_eps=1e-5, vocab_size=49152,
        max_position_embeddings=4096, sliding_window=64,
        layer_types=["sliding_attention", "full_attention"] * 2)
    mx.random.seed(1)
    weights = {name: array * 3 if array.ndim == 2 else array  # Else all tokens are about as likely.
               for name, array in tree_flatten(llama.Model(arguments).parameters())}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps({**asdict(arguments), "eos_token_id": 2}))


@dataclass
class Chat:
    """A conversation that grows by one question and one answer a turn."""

    messages: list = field(default_factory=lambda: [{"role": "system", "content": SYSTEM}])
    answers: list = field(default_factory=list)
    cached: list = field(default_factory=list)

    def ask(self, server, question):
        self.messages.append({"role": "user", "content": question})
        body = {"messages": self.messages, "max_tokens": 16, "temperature": 0}
        reply = server.post("/v1/chat/completions", body)
        [choice] = reply["choices"]
        self.messages.append({"role": "assistant", "content": choice["message"]["content"]})
        self.answers.append((choice["message"]["content"], choice["finish_reason"]))
        self.cached.append(reply["usage"]["prompt_tokens_details"]["cached_tokens"])


class Server:
    """A running server. It has said all of its `lines` of stderr once it has ended."""

    def __init__(self, program, *arguments, **variables):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.lines, self._ready = [], threading.Event()
        command = [sys.executable, *program, "--model", MODEL, "--port", self.port, *arguments]
        self.process = subprocess.Popen(
            [*map(str, command)], env={**environment(), **variables}, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self._ready.wait(120) and self.process.poll() is None, self.said()

    def post(self, path, body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(120)
        self._reader.join()
        self.process.stderr.close()
        return self.process.returncode

    def said(self):
        return "\n".join(self.lines)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if "Starting httpd" in line:
                self._ready.set()
        self._ready.set()


@contextlib.contextmanager
def running(program, *arguments, **variables):
    server = Server(program, *arguments, **variables)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end()


def kept(store, *arguments, **variables):
    return running(KEPT, "--kvkeep-dir", store, "--kvkeep-max-size", "1GB", "--kvkeep-block-size",
                   BLOCK_SIZE, *arguments, **variables)


def unbroken(num_turns, *arguments):
    """The chat as one mlx-lm server has it."""
    chat = Chat()
    with running(PLAIN, *arguments) as server:
        for question in QUESTIONS[:num_turns]:
            chat.ask(server, question)
    return chat


def shared_blocks(chat, turn):
    """Tokens in the full blocks that the prompt of a turn shares with what the turn before left."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)

    def prompt(messages):
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return tokenizer.encode(text, add_special_tokens=False)

    answer, reason = chat.answers[turn - 1]
    answer += tokenizer.eos_token if reason == "stop" else ""
    left = prompt(chat.messages[: 2 * turn]) + tokenizer.encode(answer, add_special_tokens=False)
    asked = prompt(chat.messages[: 2 * turn + 2])
    common = next(i for i, (a, b) in enumerate(zip([*left, None], asked)) if a != b)
    return common - common % BLOCK_SIZE
