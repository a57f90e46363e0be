"""Minutes of many clients that leave when they like, while processes are killed."""

import http.client
import json
import os
import random
import signal
import threading
import time

import pytest

from servers import Q8, common_options, complete, completion, free_port, is_gone, poll, said_by, story

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("KVKEEP_SOAK", 300))
CLIENTS, PROMPTS = 8, 24
MB = 1 << 20  # As kvkeep counts it.
LIMIT_MB = 60
KILLS = [(0.25, "server"), (0.5, "kvkeep"), (0.75, "server")]  # When, as parts of the time, and what.


class Traffic:
    """What all clients share. `outage` is odd while nobody is meant to answer."""

    def __init__(self, port, expected):
        self.port, self.expected = port, expected
        self.end = time.monotonic() + SECONDS
        self.outages = 0
        self.answered = self.left = self.lost = self.cached = 0
        self.faults = []
        self.lock = threading.Lock()

    def count(self, **what):
        with self.lock:
            for name, number in what.items():
                setattr(self, name, getattr(self, name) + number)

    def run_client(self, seed):
        chance = random.Random(seed)
        while time.monotonic() < self.end and not self.faults:
            before = self.outages
            try:
                self.request(chance)
            except (OSError, http.client.HTTPException) as error:
                if self.outages == before and not before % 2:
                    self.faults.append(f"without a kill: {error!r}")
                self.count(lost=1)
                threading.Event().wait(0.1)  # Until somebody listens again.

    def request(self, chance):
        number = chance.randrange(PROMPTS)
        leaves = chance.random() < 0.25
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            body = completion(story(number * 7, 24), 12, stream=leaves)
            connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
            if leaves:
                self.leave(connection, chance)
            else:
                self.hear(connection, number)
        finally:
            connection.close()

    def leave(self, connection, chance):
        if chance.random() < 0.5:
            threading.Event().wait(chance.random() * 0.5)  # While it waits, or computes.
        else:
            connection.getresponse().read(40)
        self.count(left=1)

    def hear(self, connection, number):
        reply = connection.getresponse()
        body = json.loads(reply.read())
        if reply.status in (502, 503):  # kvkeep is there, the server is not yet, or not any more.
            raise http.client.HTTPException(f"{reply.status}: {body}")
        if reply.status != 200:
            self.faults.append(f"{reply.status}: {body}")
        elif (body["content"], body["tokens"]) != self.expected[number]:
            self.faults.append(f"prompt {number}, {reply.getheader('x-kvkeep-reason')}: {body['content']!r}")
        self.count(answered=1, cached=body.get("timings", {}).get("cache_n", 0))


def bytes_of(store):
    total = 0
    for path in store.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def is_idle(stats):
    return stats["waiting"] == stats["saves_running"] == 0 and not any(s["reserved"] for s in stats["slots"])


def test_eight_clients_two_killed_servers_and_a_killed_kvkeep(build, start_plain, launch, tmp_path):
    plain = start_plain(build, *Q8)
    expected = [said_by(complete(plain, story(number * 7, 24))) for number in range(PROMPTS)]
    plain.end()

    store, port, children = tmp_path / "store", free_port(), []

    def start():
        kept = launch("--dir", store, "--max-size", f"{LIMIT_MB}MB", "--", *build.command, *common_options(), *Q8,
                      "--port", port, port=port)
        kept.wait_until_ready()
        children.append(kept.child())
        return kept

    kept = start()
    traffic = Traffic(port, expected)
    clients = [threading.Thread(target=traffic.run_client, args=(seed,), daemon=True) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    kills, most = [(traffic.end - SECONDS * (1 - part), what) for part, what in KILLS], 0
    while time.monotonic() < traffic.end and not traffic.faults:
        most = max(most, bytes_of(store))
        if kills and time.monotonic() > kills[0][0]:
            _, what = kills.pop(0)
            traffic.outages += 1
            os.kill(kept.child() if what == "server" else kept.pid, signal.SIGKILL)
            kept.process.wait(60)
            kept = start()
            traffic.outages += 1
        threading.Event().wait(0.25)
    for client in clients:
        client.join(120)
    print(f"{traffic.answered} answered, {traffic.left} left, {traffic.lost} lost to kills, "
          f"{traffic.cached} tokens reused, at most {most / MB:.1f} MB of {LIMIT_MB}")
    assert not traffic.faults, traffic.faults[0]
    assert not any(client.is_alive() for client in clients), "a request hangs"
    assert traffic.answered > SECONDS / 10 and traffic.left > 0 and traffic.cached > 0 and not kills
    assert most <= LIMIT_MB * MB
    poll(lambda: is_idle(kept.stats()))
    assert kept.end() == 0
    assert all(is_gone(child) for child in children)
