"""Cold loads of the same files by kvkeep and by the safetensors package, in turn. Prints medians and the ratio.

    .venv/bin/python bench/against_safetensors.py [DIRECTORY]
"""
import os
import pathlib
import statistics
import sys
import tempfile
import time

import kvkeep
import numpy
from safetensors.numpy import load_file

BLOCKS, LAYERS, RUNS = 8, 30, 15


def make_cold(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def timed(load):
    started = time.perf_counter()
    load()
    return time.perf_counter() - started


def main():
    where = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        random = numpy.random.default_rng(1)
        layers = [(random.standard_normal((1, 3, 256, 64)).astype(numpy.float16),) * 2 for _ in range(LAYERS)]
        keys = [bytes([i]) * 32 for i in range(BLOCKS)]
        with kvkeep.BlockCache(folder, max_size="2GB", hot_size=0, durability="data") as cache:
            for key in keys:
                assert cache.save(key, layers, token_count=256)
            cache.flush()
            paths = {key: next(pathlib.Path(folder).glob(f"?/{key.hex()}.safetensors")) for key in keys}
            bytes_of_one = paths[keys[0]].stat().st_size
            block = cache.load(keys[0])
            theirs = load_file(paths[keys[0]])
            assert numpy.array_equal(numpy.asarray(block.layers[0][0]), theirs["layer_0_state_0"])
            times = {"kvkeep": [], "safetensors": []}
            for run in range(RUNS):
                for key in keys:
                    make_cold(paths[key])
                    times["kvkeep"].append(timed(lambda: cache.load(key)))
                    make_cold(paths[key])
                    times["safetensors"].append(timed(lambda: load_file(paths[key])))
        ours, others = (statistics.median(times[name]) for name in ("kvkeep", "safetensors"))
        print(f"cold load of {bytes_of_one / 2**20:.1f} MiB, {BLOCKS * RUNS} runs each: kvkeep {ours * 1e3:.2f} ms "
              f"({bytes_of_one / ours / 1e9:.2f} GB/s, verified), safetensors {others * 1e3:.2f} ms; ratio {ours / others:.2f}")


if __name__ == "__main__":
    main()
