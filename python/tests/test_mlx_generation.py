"""Models of mlx-lm with random weights: what is restored computes the same bits as what was stored."""

import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is missing (run: tools/install-deps mlx demo)")
pytest.importorskip("mlx_lm", reason="mlx-lm is missing (run: tools/install-deps mlx demo)")

from kvkeep.mlx import PromptCache
from mlx_lm.generate import generate_step
from mlx_lm.models import llama, mamba
from mlx_lm.models.cache import make_prompt_cache, trim_prompt_cache

VOCABULARY, WINDOW, BLOCK = 300, 24, 16
PROMPT = [(7 * i * i + 3 * i) % VOCABULARY for i in range(100)]
QUESTION = [5, 17, 250, 3, 9]


def with_attention(**more):
    return llama.Model(llama.ModelArgs(
        model_type="llama", hidden_size=128, num_hidden_layers=3, intermediate_size=128,
        num_attention_heads=2, num_key_value_heads=1, head_dim=64, rms_norm_eps=1e-5,
        vocab_size=VOCABULARY, **more))


def with_windows():
    return with_attention(layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                          sliding_window=WINDOW)


def recurrent():
    return mamba.Model(mamba.ModelArgs(
        model_type="mamba", vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, state_size=16,
        num_hidden_layers=2, conv_kernel=4, use_bias=False, use_conv_bias=True, time_step_rank=4))


MODELS = {
    "attention": (with_attention, {}, 96),
    "windows": (with_windows, {}, len(PROMPT)),
    "recurrent": (recurrent, {}, len(PROMPT)),
    "quantised": (with_attention, {"kv_bits": 8, "kv_group_size": 32, "quantized_kv_start": 0}, 96),
}


def computed(model, tokens, cache, options):
    """The cache after a prefill."""
    for _ in generate_step(mx.array(tokens), model, prompt_cache=cache, max_tokens=0, **options):
        pass
    return cache


def continued(model, tokens, cache, options):
    """Twelve tokens that follow, and the probabilities of all that could have been."""
    steps = generate_step(mx.array(tokens), model, prompt_cache=cache, max_tokens=12, **options)
    return [(token, memoryview(logprobs).tobytes()) for token, logprobs in steps]


@pytest.mark.parametrize("name", MODELS)
def test_a_restored_prompt_continues_as_one_that_mlx_lm_itself_cut(open_cache, name):
    make, options, expected = MODELS[name]
    mx.random.seed(3)
    model = make()
    cache = computed(model, PROMPT, make_prompt_cache(model), options)
    assert PromptCache(open_cache(), block_size=BLOCK).store(PROMPT, cache).tokens == len(PROMPT)

    open_cache.close_all()
    restored, covered = PromptCache(open_cache(), block_size=BLOCK).fetch(PROMPT + QUESTION)
    assert covered == expected
    trim_prompt_cache(cache, len(PROMPT) - covered)
    rest = (PROMPT + QUESTION)[covered:]
    assert continued(model, rest, restored, options) == continued(model, rest, cache, options)
