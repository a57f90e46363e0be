"""Second process: the prompt from the store, then with a damaged file, then with a zeroed block."""
import os
import sys

import packages

packages.require_all()

import kvkeep
import numpy

import generation
import kv_blocks
import report
from session import CONTINUATION, Session

DAMAGED = 0  # Index of the block whose file is damaged: another one follows it.


def run(directory):
    watch = report.Stopwatch()
    report.section("a new process, the same prompt")
    session = Session(directory)
    report.line("model", f"loaded in {report.seconds(watch.lap())}, with or without kvkeep")
    reference = session.read_reference()
    report.check(session.tokens == reference["tokens"], "the prompt has other tokens than before")
    undamaged(session, reference)
    flip_one_byte(session.block_file(DAMAGED))
    damaged(session, reference)
    control(session, reference)


def undamaged(session, reference):
    watch = report.Stopwatch()
    with session.open_store() as store:
        opened = watch.lap()
        blocks = store.load_many(session.keys)
        loaded = watch.lap()
        report.check(len(blocks) == len(session.keys), f"only {len(blocks)} blocks were found")
        cache = empty_cache(session)
        kv_blocks.rebuild(cache, [block.layers for block in blocks], compute=None)
        rebuilt = watch.lap()
        compute_rest(session, cache)
        rest, ready = watch.lap(), watch.total()
        size, files = store.stats()["file_bytes"], store.stats()["num_files"]

    remaining = len(session.tokens) - 1 - session.stored_tokens
    report.line("ready after", f"{report.seconds(ready)}: open {report.seconds(opened)}, "
                f"load {len(blocks)} blocks {report.seconds(loaded)}, "
                f"rebuild {report.seconds(rebuilt)}, "
                f"compute the other {remaining} tokens {report.seconds(rest)}")
    ratio = reference["cold_seconds"] / ready
    report.line("ratio", f"{ratio:.1f} times as fast as the cold prefill")
    report.line("disk", f"{kvkeep.format_bytes(size)} in {files} files, "
                f"read and verified at {size / loaded / (1 << 30):.2f}GB/s")
    compare(session, reference, cache)


def damaged(session, reference):
    report.section(f"one byte of the file of block {DAMAGED + 1} flipped")
    watch = report.Stopwatch()
    with session.open_store() as store:
        blocks = store.load_each(session.keys)
        missed = {reason: n for reason, n in store.stats()["miss_reason"].items() if n}
        report.check(missed == {"damaged": 1}, f"expected one damaged block, counted {missed}")
        report.line("miss", f"block {DAMAGED + 1} of {len(blocks)}, reason: damaged (counted once)")

        cache = empty_cache(session)
        progress = report.Progress("recompute", kv_blocks.BLOCK_SIZE)
        computed = kv_blocks.rebuild(
            cache, [block and block.layers for block in blocks],
            lambda start, stop: generation.prefill(
                session.model, session.tokens[start:stop], cache, progress))
        report.check(computed == [DAMAGED], f"recomputed the blocks {computed}")
        saved = [session.save_block(store, index, cache) for index in computed]
        report.check(all(saved), f"the block was not stored again: {saved}")
        compute_rest(session, cache)
        ready = watch.total()
    report.line("ready after", f"{report.seconds(ready)}: {len(computed)} block recomputed and "
                f"stored again, {len(blocks) - len(computed)} reused")
    compare(session, reference, cache)


def control(session, reference):
    """Proves that the comparison can fail: the stored state decides what the model says."""
    report.section(f"block {DAMAGED + 1} zeroed after loading, to see the comparison fail")
    with session.open_store() as store:
        blocks = store.load_many(session.keys)
        report.check(len(blocks) == len(session.keys), "the block stored again was not found")
        cache = empty_cache(session)
        layers = [block.layers for block in blocks]
        layers[DAMAGED] = [tuple(numpy.zeros_like(numpy.asarray(part)) for part in pair)
                           for pair in layers[DAMAGED]]
        kv_blocks.rebuild(cache, layers, compute=None)
    compute_rest(session, cache)
    tokens = continuation(session, cache)
    same = tokens == reference["continuation"]
    report.line("continuation", repr(session.model.tokenizer.decode(tokens)))
    print(f"control (one block zeroed): continuation identical: {'yes' if same else 'no'}")
    report.check(not same, "a zeroed block did not change the continuation")


def empty_cache(session):
    return generation.allocated_cache(session.model, len(session.tokens) + CONTINUATION)


def compute_rest(session, cache):
    """All but the last token, from which the continuation starts."""
    generation.prefill(session.model, session.tokens[session.stored_tokens:-1], cache)


def continuation(session, cache):
    return generation.greedy(session.model, session.tokens[-1], cache, CONTINUATION)


def compare(session, reference, cache):
    same = continuation(session, cache) == reference["continuation"]
    print(f"continuation identical: {'yes' if same else 'no'}", flush=True)
    report.check(same, "the continuation differs from the unbroken run")


def flip_one_byte(path):
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x01]))


if __name__ == "__main__":
    run(sys.argv[1])
