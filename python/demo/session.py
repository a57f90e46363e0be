"""What both processes of the demo agree on: the model, the prompt, the store and its keys."""
import json
from importlib.metadata import version
from pathlib import Path

import kvkeep

import kv_blocks
import prompt
import smollm2

CONTINUATION = 24  # Tokens to generate and compare.


class Session:
    """One process's model and prompt, and a directory that outlives the process."""

    def __init__(self, directory):
        self.store = Path(directory, "store")
        self.reference_file = Path(directory, "reference.json")
        self.model = smollm2.load()
        self.tokens = self.model.prompt_tokens(prompt.SYSTEM, prompt.QUESTION)
        self.spans = kv_blocks.spans(len(self.tokens))
        self.keys = kvkeep.chain_keys(self.tokens, block_size=kv_blocks.BLOCK_SIZE,
                                      model_name=smollm2.NAME)

    @property
    def stored_tokens(self):
        return self.spans[-1][1]

    def open_store(self):
        """Blocks of another model, of other weights or of another engine will be misses."""
        return kvkeep.BlockCache(
            self.store, max_size="256MB", model_name=smollm2.NAME,
            num_layers=self.model.num_layers, block_size=kv_blocks.BLOCK_SIZE,
            identity={"weights": self.model.digest, "kv_dtype": "F32",
                      "engine": f"mlx {version('mlx')}"})

    def save_block(self, store, index, cache):
        start, stop = self.spans[index]
        return store.save(self.keys[index], kv_blocks.cut(cache, start, stop),
                          token_count=stop - start,
                          layer_types=["KVCache"] * self.model.num_layers,
                          parent=self.keys[index - 1] if index else None)

    def block_file(self, index):
        [path] = self.store.rglob(self.keys[index].hex() + ".*")
        return path

    def write_reference(self, **values):
        self.reference_file.write_text(json.dumps(values))

    def read_reference(self):
        return json.loads(self.reference_file.read_text())
