"""What a load gives: arrays of MLX, and facts about the block."""

from __future__ import annotations

from typing import Any, Dict, List

from .._values import Block
from .cache_data import from_layers
from .metadata import as_tuples

__all__ = ["arrays_of", "facts_of"]


def arrays_of(block: Block) -> List[Any]:
    """The states of all layers. Each array is a copy, of the same dtype and shape as was saved.

    TypeError, ValueError, RuntimeError: MLX has no such dtype, or no memory.
    """
    import mlx.core  # Not before a block has been found.

    return from_layers(block.layers, mlx.core.array)


def facts_of(block: Block) -> Dict[str, Any]:
    return {
        "num_layers": len(block.layers),
        "token_count": block.token_count,
        "model_name": block.model_name,
        "block_size": block.block_size,
        "cache_signature": block.signature,
        "layer_cache_types": block.layer_types,
        "layer_meta_states": as_tuples(block.meta_states),
    }
