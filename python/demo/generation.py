"""Prefill and greedy decoding with mlx-lm's own caches."""
import mlx.core as mx
from mlx_lm.models.cache import KVCache, make_prompt_cache

# Tokens per step of a prefill. It divides the block size, so a block is computed in the same steps
# whether the run starts at the prompt's first token or at the block: equal steps give equal bits.
STEP = 64


def growing_cache(model):
    """An empty cache as mlx-lm makes it."""
    return make_prompt_cache(model.network)


def allocated_cache(model, capacity):
    """An empty cache with memory for `capacity` tokens or more, to be filled with blocks."""
    arguments = model.network.args
    rounded = -(-capacity // KVCache.step) * KVCache.step
    shape = (1, arguments.num_key_value_heads, rounded,
             arguments.hidden_size // arguments.num_attention_heads)
    cache = growing_cache(model)
    for layer in cache:
        layer.keys, layer.values = mx.zeros(shape), mx.zeros(shape)
    evaluate(cache)
    return cache


def prefill(model, tokens, cache, on_step=lambda done: None):
    """Appends the state of `tokens` to the cache. on_step gets the number of tokens done."""
    for start in range(0, len(tokens), STEP):
        step = tokens[start:start + STEP]
        model.network(mx.array(step)[None], cache=cache)
        evaluate(cache)
        on_step(start + len(step))


def greedy(model, token, cache, count):
    """The `count` most likely tokens that follow `token`, one after another."""
    generated = []
    for _ in range(count):
        logits = model.network(mx.array([[token]]), cache=cache)
        token = mx.argmax(logits[0, -1]).item()
        generated.append(token)
    return generated


def evaluate(cache):
    mx.eval([array for layer in cache for array in (layer.keys, layer.values)])
