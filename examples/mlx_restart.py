"""Run this twice: the second run finds the prompt's KV cache on disk and skips the prefill.

  make demo                                   # once: puts MLX, a small model and kvkeep in .venv
  .venv/bin/python examples/mlx_restart.py    # prefills, stores
  .venv/bin/python examples/mlx_restart.py    # continues at once
"""
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "python" / "demo"))
import prompt
import smollm2  # A small model to play with; any model that mlx-lm loads will do.

import kvkeep
import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

BLOCK = 256  # Tokens per block. The rest of a prompt that fills no block is computed every time.

model = smollm2.load()
tokens = model.prompt_tokens(prompt.SYSTEM, prompt.QUESTION)
cache = make_prompt_cache(model.network)  # One KVCache per layer.

# The key of a block stands for its tokens and all tokens before it: equal keys, equal prefixes.
keys = kvkeep.chain_keys(tokens, block_size=BLOCK, model_name=smollm2.NAME)

with kvkeep.BlockCache("~/.cache/kvkeep/example", max_size="1GB", model_name=smollm2.NAME,
                       num_layers=model.num_layers, block_size=BLOCK,
                       identity={"weights": model.digest}) as store:
    started = time.perf_counter()

    # As many blocks as there are from the start of the prompt, up to the first that is missing.
    blocks = store.load_many(keys)
    for block in blocks:
        for layer, (k, v) in zip(cache, block.layers):
            layer.update_and_fetch(mx.array(k), mx.array(v))
    known = BLOCK * len(blocks)

    # The model computes what is left, except for the last token, which starts the answer.
    for start in range(known, len(tokens) - 1, BLOCK):
        model.network(mx.array([tokens[start : min(start + BLOCK, len(tokens) - 1)]]), cache=cache)
        mx.eval([layer.keys for layer in cache], [layer.values for layer in cache])
    seconds = time.perf_counter() - started
    print(f"{known} of {len(tokens)} tokens from disk, ready in {seconds:.2f} s")

    # Store the blocks that were not there. MLX arrays go in as they are.
    for i in range(len(blocks), len(keys)):
        part = slice(i * BLOCK, (i + 1) * BLOCK)
        layers = [(layer.keys[..., part, :], layer.values[..., part, :]) for layer in cache]
        store.save(keys[i], layers, token_count=BLOCK, parent=keys[i - 1] if i else None)

token = tokens[-1]
for _ in range(24):
    token = mx.argmax(model.network(mx.array([[token]]), cache=cache)[0, -1]).item()
    print(model.tokenizer.decode([token]), end="", flush=True)
print()
