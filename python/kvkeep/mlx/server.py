"""mlx-lm's own server with a prompt cache that outlives it.

    python -m kvkeep.mlx.server --model DIR --kvkeep-dir DIR --kvkeep-max-size 50GB

Same options, same API. Where the store cannot be used, it serves as mlx-lm alone would.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from types import FrameType, ModuleType
from typing import Any, List, Optional

from .._cache import BlockCache
from .._errors import Error, InvalidArgument
from .._kvkeep import format_bytes
from ._options import Options, help_text, parse


def main(arguments: Optional[List[str]] = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options, rest = parse(arguments, os.environ)
    if "-h" in rest or "--help" in rest:
        print(help_text())
        _serve(rest, options, None)
    blocks = _open(options)
    try:
        _serve(rest, options, blocks)
    finally:
        if blocks is not None:
            blocks.close()
    return 0


def _open(options: Options) -> Optional[BlockCache]:
    """The store, announced in one line; None if this process has to do without it."""
    try:
        blocks = BlockCache(options.dir, max_size=options.max_size, hot_size=options.hot_size)
    except InvalidArgument as error:
        raise SystemExit(f"kvkeep: {error}") from None
    except Error as error:
        _say(f"{error}")
        _say("serving without a store: prompts are kept in RAM only. Another directory: "
             "--kvkeep-dir DIR or KVKEEP_DIR")
        return None
    stats = blocks.stats()
    _say(f"{options.dir}: {format_bytes(stats['total_size_bytes'])} of "
         f"{format_bytes(stats['max_size_bytes'])} used")
    return blocks


def _serve(arguments: List[str], options: Options, blocks: Optional[BlockCache]) -> None:
    """Runs mlx-lm's main() until it is interrupted; SIGTERM interrupts it as Ctrl-C does."""
    from mlx_lm import server

    signal.signal(signal.SIGTERM, _interrupt)
    sys.argv = ["kvkeep.mlx.server", *arguments]
    if blocks is not None:
        _require(server, "LRUPromptCache", "run")
        server.run = functools.partial(_run, server, server.run, options, blocks)
    server.main()


def _run(server: Any, run: Any, options: Options, blocks: BlockCache, host: str, port: int,
         model_provider: Any, *more: Any, **named: Any) -> None:
    """In place of mlx-lm's run(): the same, with prompt caches that stand on the store."""
    import mlx.core as mx

    from ._prompt_store import PromptStore
    from ._server_cache import StoredPromptCache

    if mx.distributed.init().size() > 1:
        _say("serving without a store: it does not keep models that are spread over processes")
        return run(host, port, model_provider, *more, **named)
    given = model_provider.cli_args
    store = PromptStore(
        blocks, block_size=options.block_size, salt=options.salt,
        quantized=(given.kv_bits, given.kv_group_size) if given.kv_bits is not None else None)
    server.LRUPromptCache = functools.partial(StoredPromptCache, store=store)
    try:
        run(host, port, model_provider, *more, **named)
    finally:
        store.close()
        _say(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in store.stats().items()))


def _require(module: ModuleType, *names: str) -> None:
    missing = [name for name in names if not hasattr(module, name)]
    if missing:
        raise SystemExit(f"kvkeep: this mlx-lm has no {module.__name__}.{missing[0]}: kvkeep.mlx knows "
                         "mlx-lm 0.32; use that, or mlx_lm.server by itself")


def _interrupt(number: int, frame: Optional[FrameType]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # A second one would cut the store's close short.
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(f"kvkeep: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
