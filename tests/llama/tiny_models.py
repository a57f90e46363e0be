"""Models of two layers with random weights, for forms of state that the model of the tests does not have.

They say nothing that makes sense. Their vocabulary and chat template are those of the real model.
"""

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

LAYERS, WIDTH = 2, 64
CONTEXT = 4096  # Tokens.


class TinyModel:
    """A GGUF file that is being written; `arch` and the names of tensors are those of llama.cpp."""

    def __init__(self, path, arch, vocabulary):
        self.writer = GGUFWriter(path, arch)
        self.chance = np.random.default_rng(1)
        self.writer.add_name(f"tiny-{arch}")
        self.writer.add_context_length(CONTEXT)
        self.writer.add_embedding_length(WIDTH)
        self.writer.add_block_count(LAYERS)
        self.writer.add_file_type(0)
        self.writer.add_layer_norm_rms_eps(1e-5)
        self.embed(self.take_vocabulary(vocabulary))
        self.ones("output_norm.weight", WIDTH)

    def take_vocabulary(self, model):
        """Of another model's file; returns its tokens."""
        fields = GGUFReader(model).fields
        add = {GGUFValueType.ARRAY: self.writer.add_array, GGUFValueType.STRING: self.writer.add_string,
               GGUFValueType.UINT32: self.writer.add_uint32, GGUFValueType.BOOL: self.writer.add_bool}
        for name, field in fields.items():
            if name.startswith("tokenizer."):
                add[field.types[0]](name, field.contents())
        return fields["tokenizer.ggml.tokens"].contents()

    def embed(self, tokens):
        """Zeros for tokens that are not ASCII, so that none is said: version 2 servers fail with parts of letters."""
        weights = self.chance.standard_normal((len(tokens), WIDTH)).astype(np.float32)
        # How the vocabulary spells a space and a line's end.
        is_ascii = [token.replace("Ġ", " ").replace("Ċ", "\n").isascii() for token in tokens]
        self.writer.add_tensor("token_embd.weight", weights * np.array(is_ascii, np.float32)[:, None])

    def random(self, name, *shape, scale=0.3):
        self.writer.add_tensor(name, (self.chance.standard_normal(shape) * scale).astype(np.float32))

    def ones(self, name, *shape):
        self.writer.add_tensor(name, np.ones(shape, np.float32))

    def write(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def write_mamba(path, vocabulary):
    """A recurrent model: its state is that of the last token."""
    inner, state, kernel, rank = 128, 16, 4, 4
    model = TinyModel(path, "mamba", vocabulary)
    model.writer.add_feed_forward_length(0)
    model.writer.add_head_count(0)
    model.writer.add_ssm_inner_size(inner)
    model.writer.add_ssm_state_size(state)
    model.writer.add_ssm_conv_kernel(kernel)
    model.writer.add_ssm_time_step_rank(rank)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        model.ones(block + "attn_norm.weight", WIDTH)
        model.random(block + "ssm_in.weight", 2 * inner, WIDTH)
        model.random(block + "ssm_conv1d.weight", inner, kernel, scale=0.5)
        model.random(block + "ssm_conv1d.bias", inner)
        model.random(block + "ssm_x.weight", rank + 2 * state, inner)
        model.random(block + "ssm_dt.weight", inner, rank)
        model.random(block + "ssm_dt.bias", inner)
        decay = -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1))
        model.writer.add_tensor(block + "ssm_a", decay)
        model.ones(block + "ssm_d", inner)
        model.random(block + "ssm_out.weight", WIDTH, inner)
    model.write()


def write_gemma(path, vocabulary, window=32):
    """Every other layer sees the last `window` tokens only, and keeps no more of them."""
    heads, size, hidden = 2, 32, 128
    model = TinyModel(path, "gemma2", vocabulary)
    model.writer.add_feed_forward_length(hidden)
    model.writer.add_head_count(heads)
    model.writer.add_head_count_kv(heads)
    model.writer.add_key_length(size)
    model.writer.add_value_length(size)
    model.writer.add_sliding_window(window)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            model.ones(f"{block}{norm}.weight", WIDTH)
        for part in ("attn_q", "attn_k", "attn_v"):
            model.random(f"{block}{part}.weight", heads * size, WIDTH)
        model.random(block + "attn_output.weight", WIDTH, heads * size)
        for part in ("ffn_gate", "ffn_up"):
            model.random(f"{block}{part}.weight", hidden, WIDTH)
        model.random(block + "ffn_down.weight", WIDTH, hidden)
    model.write()
