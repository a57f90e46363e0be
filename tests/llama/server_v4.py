#!/usr/bin/env python3
"""A llama-server of the build in xllamacpp, which writes slot files of version 4.

It takes llama-server's names for the options that the tests use; any other is an error.
"""

import signal
import sys
import threading

import xllamacpp
from xllamacpp import ggml_type, llama_flash_attn_type

CACHE_TYPES = {"f16": ggml_type.GGML_TYPE_F16, "bf16": ggml_type.GGML_TYPE_BF16, "q8_0": ggml_type.GGML_TYPE_Q8_0}
FLASH_ATTENTION = {
    "on": llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED,
    "auto": llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_AUTO,
}

# Option: attribute of the parameters, and what makes its value of a word.
VALUES = {
    "-m": ("model.path", str),
    "-c": ("n_ctx", int),
    "-np": ("n_parallel", int),
    "-t": ("cpuparams.n_threads", int),
    "-ngl": ("n_gpu_layers", int),
    "-fa": ("flash_attn_type", FLASH_ATTENTION.__getitem__),
    "-ctk": ("cache_type_k", CACHE_TYPES.__getitem__),
    "-ctv": ("cache_type_v", CACHE_TYPES.__getitem__),
    "-cram": ("cache_ram_mib", int),
    "--api-prefix": ("api_prefix", str),
    "--api-key": ("api_keys", lambda key: [key]),
    "--host": ("hostnames", lambda name: [name]),
    "--port": ("port", int),
    "--slot-save-path": ("slot_save_path", lambda path: path.rstrip("/") + "/"),
    "--threads-http": ("n_threads_http", int),
}
SWITCHES = {
    "-kvu": ("kv_unified", True),
    "--context-shift": ("ctx_shift", True),
    "--no-slots": ("endpoint_slots", False),
    "--swa-full": ("swa_full", True),
}


def set_at(parameters, path, value):
    *parents, name = path.split(".")
    for parent in parents:
        parameters = getattr(parameters, parent)
    setattr(parameters, name, value)


def parameters_of(words):
    parameters = xllamacpp.CommonParams()
    parameters.n_parallel = 1
    parameters.endpoint_slots = True
    words = iter(words)
    for word in words:
        if word in SWITCHES:
            set_at(parameters, *SWITCHES[word])
        elif word in VALUES:
            path, convert = VALUES[word]
            set_at(parameters, path, convert(next(words)))
        else:
            sys.exit(f"error: invalid argument: {word}")
    return parameters


def main():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    server = xllamacpp.Server(parameters_of(sys.argv[1:]))
    print(f"server is listening on {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
