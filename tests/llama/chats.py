"""Chats of several turns with a llama-server, as a client has them."""

import threading
from dataclasses import dataclass, field

from servers import story

QUESTIONS = ("Which train carried salt?", "Where did the first train go?", "How many wagons were there?",
             "Which town got bread?", "Say goodbye to the guide.")


@dataclass
class Chat:
    """A conversation that grows by a question and an answer a turn; each number tells another story."""

    number: int
    sentences: int = 18
    messages: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    prompt_tokens: int = 0  # Computed, over all turns.
    cached: list = field(default_factory=list)

    def __post_init__(self):
        self.messages.append({"role": "system", "content": story(self.number * 11, self.sentences)})

    def ask(self, server, n_predict=16):
        question = QUESTIONS[len(self.answers) % len(QUESTIONS)]
        self.messages.append({"role": "user", "content": question})
        body = {"messages": self.messages, "max_tokens": n_predict, "temperature": 0}
        reply = server.post("/v1/chat/completions", body)
        assert reply.status == 200, reply.body
        text = reply.json()["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": text})
        self.answers.append(text)
        self.prompt_tokens += reply.timings["prompt_n"]
        self.cached.append(reply.timings["cache_n"])
        return reply


def hold(chats, server, turns, at_once=2):
    """Every chat has `turns` more turns, one turn of each after the other, `at_once` at the same time."""
    for _ in range(turns):
        for first in range(0, len(chats), at_once):
            failures = []

            def ask(chat):
                try:
                    chat.ask(server)
                except Exception as failure:  # Raised below, in the test's own thread.
                    failures.append(failure)

            threads = [threading.Thread(target=ask, args=(chat,)) for chat in chats[first : first + at_once]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]


def answers_of(chats):
    return [chat.answers for chat in chats]


def computed(chats):
    return sum(chat.prompt_tokens for chat in chats)
