"""mlx-lm with a memory: prompt caches that outlive the process.

PromptCache stores and finds them; `python -m kvkeep.mlx.server` is mlx-lm's server standing on it.
"""

from ._requirements import require_mlx_lm

require_mlx_lm()

from ._prepared import PreparedPrompt
from .prompt_cache import PromptCache

__all__ = ["PreparedPrompt", "PromptCache"]
