"""First process: a cold prefill, its KV cache into the store, the continuation to compare with."""
import sys

import packages

packages.require_all()

from importlib.metadata import version

import generation
import report
import smollm2
from session import CONTINUATION, Session


def run(directory):
    session = Session(directory)
    report.line("model", f"{smollm2.NAME}, {session.model.num_layers} layers, float32, "
                         f"mlx {version('mlx')} on the CPU")
    report.line("prompt", f"{len(session.tokens)} tokens")

    cache = generation.growing_cache(session.model)
    *before, last = session.tokens
    watch = report.Stopwatch()
    generation.prefill(session.model, before, cache, report.Progress("prefill", len(before)))
    cold = watch.lap()
    report.line("cold prefill", f"{report.seconds(cold)} ({len(before) / cold:.0f} tokens/s)")

    save_all(session, cache)
    continuation = generation.greedy(session.model, last, cache, CONTINUATION)
    report.line("continuation", repr(session.model.tokenizer.decode(continuation)))
    session.write_reference(cold_seconds=cold, tokens=session.tokens, continuation=continuation)


def save_all(session, cache):
    with session.open_store() as store:
        watch = report.Stopwatch()
        for index in range(len(session.keys)):
            saved = session.save_block(store, index, cache)
            report.check(saved, f"block {index + 1} was not stored: {saved}")
        accepted = watch.lap()
        store.flush()
        report.line("stored", f"{len(session.keys)} blocks of 256 tokens; the engine waited "
                              f"{report.seconds(accepted)}, on disk after "
                              f"{report.seconds(watch.total())}")


if __name__ == "__main__":
    run(sys.argv[1])
