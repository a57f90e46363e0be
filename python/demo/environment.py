"""How processes that run the demo's model are started."""
import glob
import os


def environment():
    """With Debian's OpenBLAS, if present, MLX computes several times as fast as with its own."""
    found = glob.glob("/usr/lib/*/openblas-pthread/libopenblas.so.0")
    preload = [*filter(None, [os.environ.get("LD_PRELOAD")]), *found[:1]]
    return {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
            "LD_PRELOAD": ":".join(preload)}
