"""The options that the launcher adds to those of mlx-lm's server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Tuple

from .._kvkeep import parse_size


class Option(NamedTuple):
    name: str  # --kvkeep-NAME, KVKEEP_NAME
    default: Optional[str]
    metavar: str
    read: Callable[[str], Any]
    help: str


class Options(NamedTuple):
    dir: str
    max_size: str
    hot_size: str
    block_size: int
    salt: str


def _size(text: str) -> str:
    parse_size(text)
    return text


def _hot_size(text: str) -> str:
    return text if text == "auto" else _size(text)


def _tokens(text: str) -> int:
    if not 1 <= int(text) <= 1_000_000:
        raise ValueError(f"{text} is not from 1 to 1000000")
    return int(text)


def _first_line(path: str) -> str:
    return Path(path).expanduser().read_text(encoding="utf-8").partition("\n")[0]


OPTIONS = [
    Option("dir", None, "DIR", str, "the store; default $XDG_CACHE_HOME/kvkeep/mlx, ~/.cache/kvkeep/mlx"),
    Option("max-size", "50GB", "SIZE", _size, "what it may occupy on disk; default 50GB"),
    Option("hot-size", "auto", "SIZE", _hot_size,
           "RAM for its blocks; default auto: 1GB or 5 %% of the RAM, whichever is less"),
    Option("block-size", "256", "TOKENS", _tokens,
           "prompts share what they have in common in multiples of this; default 256"),
    Option("salt", "", "TEXT", str, "prompts stored with another salt are not found"),
    Option("salt-file", None, "FILE", _first_line,
           "its first line is the salt, and no process list shows it"),
]


def parse(arguments: List[str], environment: Mapping[str, str]) -> Tuple[Options, List[str]]:
    """Our options, and the arguments that are left for mlx-lm. Wrong ones end the program, status 2."""
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    values: Dict[str, Any] = {}
    for option in OPTIONS:
        flag, variable = f"--kvkeep-{option.name}", "KVKEEP_" + _key(option).upper()
        text, origin = getattr(given, "kvkeep_" + _key(option)), flag
        if text is None and environment.get(variable):
            text, origin = environment[variable], variable
        values[_key(option)] = _read(option, text or option.default, origin, parser.error)
    salt_file = values.pop("salt_file")
    if salt_file is not None and values["salt"]:
        parser.error("--kvkeep-salt and --kvkeep-salt-file: give only one of them")
    values["salt"] = salt_file or values["salt"] or ""
    values["dir"] = os.path.expanduser(values["dir"] or default_directory(environment))
    return Options(**values), rest


def help_text() -> str:
    return _parser().format_help()


def default_directory(environment: Mapping[str, str]) -> str:
    base = environment.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else "~/.cache", "kvkeep", "mlx")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvkeep.mlx.server", add_help=False, allow_abbrev=False,
        usage="kvkeep.mlx.server [--kvkeep-… …] [options of mlx_lm.server]",
        description="mlx-lm's server with prompt caches that outlive it. Each option here is also "
                    "a variable: KVKEEP_DIR, KVKEEP_MAX_SIZE, …")
    for option in OPTIONS:
        parser.add_argument(f"--kvkeep-{option.name}", metavar=option.metavar, help=option.help)
    return parser


def _key(option: Option) -> str:
    return option.name.replace("-", "_")


def _read(option: Option, text: Optional[str], origin: str, error: Callable[[str], NoReturn]) -> Any:
    if text is None:
        return None
    try:
        return option.read(text)
    except (ValueError, OSError) as problem:
        error(f"{origin}: {problem}")
