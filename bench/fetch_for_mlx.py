"""A prefix of 4,096 tokens from kvkeep to ready MLX arrays, beside one copy of its bytes, in turn.

    .venv/bin/python bench/fetch_for_mlx.py [DIRECTORY]

The prefix is SmolLM2's (30 layers, 3 heads of 64, BF16). The copies go from one numpy array per tensor into
fresh memory, as a fetch does, and into memory that was used before. Prints medians and ratios.
"""
import statistics
import sys
import tempfile
import time

import kvkeep
import mlx.core as mx
import numpy
from kvkeep.mlx import PromptCache
from mlx_lm.models.cache import KVCache

LAYERS, HEADS, WIDTH, TOKENS, RUNS = 30, 3, 64, 4096, 15


def prompt_cache():
    layers = []
    for _ in range(LAYERS):
        layer = KVCache()
        layer.update_and_fetch(*(mx.random.normal((1, HEADS, TOKENS, WIDTH)).astype(mx.bfloat16)
                                 for _ in range(2)))
        layers.append(layer)
    return layers


def timed(work):
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def fetch(prompts, tokens):
    found, covered = prompts.fetch(tokens)
    assert covered == TOKENS and len(found) == LAYERS


def measure(cache, given):
    prompts, tokens = PromptCache(cache), list(range(TOKENS + 1))
    report = prompts.store(tokens[:-1], given)
    assert report.tokens == TOKENS, report.refused
    found, _ = prompts.fetch(tokens)
    assert all(mx.array_equal(a.keys, b.keys[..., :TOKENS, :]) for a, b in zip(found, given))
    found = None
    sources = [numpy.random.default_rng(1).integers(0, 255, HEADS * TOKENS * WIDTH * 2, numpy.uint8)
               for _ in range(2 * LAYERS)]
    used = [source.copy() for source in sources]
    works = {
        "fetch": lambda: fetch(prompts, tokens),
        "copy into fresh memory": lambda: [source.copy() for source in sources],
        "copy into used memory": lambda: [numpy.copyto(to, source) for to, source in zip(used, sources)],
    }
    times = {name: [] for name in works}
    for _ in range(RUNS):
        for name, work in works.items():
            times[name].append(timed(work))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    where = sys.argv[1] if len(sys.argv) > 1 else None
    given = prompt_cache()
    size = sum(layer.keys.nbytes + layer.values.nbytes for layer in given)
    for tier, options in (("hot tier", {"hot_size": "1GB"}), ("disk", {"hot_size": 0})):
        with tempfile.TemporaryDirectory(dir=where) as folder:
            with kvkeep.BlockCache(folder, max_size="2GB", **options) as cache:
                medians = measure(cache, given)
        ours = medians.pop("fetch")
        beside = ", ".join(f"{name} {other:.1f} ms (ratio {ours / other:.2f})"
                           for name, other in medians.items())
        print(f"{TOKENS} tokens, {size / 2**20:.0f} MiB, from the {tier}: {ours:.1f} ms; {beside}")


if __name__ == "__main__":
    main()
