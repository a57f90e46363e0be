#!/usr/bin/env python3
"""As much of llama-server as kvkeep needs: one token for each byte, slots that can be saved and restored.

Slot files are those of docs/llama-slots.md, version 2, two layers with rows of 8 bytes. Nothing is computed: a token
is said to take 2 ms.
"""
import argparse
import http.server
import json
import pathlib
import re
import struct
import threading

LAYERS, ROW, SLOTS, CONTEXT = 2, 8, 2, 4096
ANSWER = [ord(c) for c in " yes"]


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def slot_file(slot, tokens):
    n = len(tokens)
    out = struct.pack("<IIIiiI", 0x67677371, 2, n + 4, -1, 1, n) + struct.pack(f"<{n}iI", *tokens, 0)
    out += struct.pack("<I", SLOTS)
    for stream in range(SLOTS):
        out += struct.pack("<I", n if stream == slot else 0)
        if stream != slot or n == 0:
            continue
        out += b"".join(struct.pack("<iIi", position, 1, slot) for position in range(n))
        out += struct.pack("<II", 0, LAYERS)
        for _ in range(2 * LAYERS):
            out += struct.pack("<iQ", 1, ROW) + b"".join(struct.pack("<q", token) for token in tokens)
    return out


def tokens_of_slot_file(data):
    (n,) = struct.unpack_from("<I", data, 20)
    return list(struct.unpack_from(f"<{n}i", data, 24))


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, args):
        super().__init__((args.host, args.port), Answers)
        self.args, self.lock, self.slots = args, threading.Lock(), [[] for _ in range(SLOTS)]

    def complete(self, body):
        prompt = body["prompt"]
        tokens = list(prompt.encode()) if isinstance(prompt, str) else prompt
        slot = body.get("id_slot", 0) % SLOTS
        with self.lock:
            cached = min(common(self.slots[slot], tokens), len(tokens) - 1)
            self.slots[slot] = tokens + ANSWER[:-1] if body.get("n_predict", 1) else tokens
        computed = len(tokens) - cached
        timings = {"cache_n": cached, "prompt_n": computed, "prompt_ms": 2.0 * computed, "predicted_n": len(ANSWER)}
        return {"content": bytes(ANSWER).decode(), "id_slot": slot, "timings": timings}

    def act_on_slot(self, slot, action, body):
        path = pathlib.Path(self.args.slot_save_path, body.get("filename", ""))
        with self.lock:
            if action == "save":
                path.write_bytes(slot_file(slot, self.slots[slot]))
            elif action == "restore":
                self.slots[slot] = tokens_of_slot_file(path.read_bytes())
            else:
                self.slots[slot] = []
            return {"n_saved": len(self.slots[slot]), "n_restored": len(self.slots[slot])}


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        known = {"/health": {"status": "ok"}, "/lora-adapters": [],
                 "/props": {"total_slots": SLOTS, "default_generation_settings": {"n_ctx": CONTEXT},
                            "build_info": "fake-1", "model_path": self.server.args.model}}
        path = self.path.removeprefix(self.server.args.api_prefix)
        self.answer(known.get(path, {"error": {"message": "no such page"}}), 200 if path in known else 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.removeprefix(self.server.args.api_prefix)
        slot = re.fullmatch(r"/slots/(\d+)\?action=(\w+)", path)
        if slot:
            self.answer(self.server.act_on_slot(int(slot[1]), slot[2], body))
        elif path == "/tokenize":
            self.answer({"tokens": list(body["content"].encode())})
        elif path == "/completion":
            self.answer(self.server.complete(body))
        else:
            self.answer({"error": {"message": "no such page"}}, 404)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-m", "--model")
    parser.add_argument("--slot-save-path")
    parser.add_argument("--api-key")
    parser.add_argument("--api-prefix", default="")
    parser.add_argument("--threads-http")
    Server(parser.parse_args()).serve_forever()


if __name__ == "__main__":
    main()
