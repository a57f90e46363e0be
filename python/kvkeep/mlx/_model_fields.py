"""What a model's state depends on besides tokens: the fields under which its prompts are kept.

Folders are told apart by what is in them, not by their path: the configuration, code of the model's own,
and the weights. Weights that the Hugging Face cache names by their SHA-256 are known by that. Others are
by size, modification time, and the names, shapes and first bytes of all their tensors: hashing whole
files would take longer than loading them. See docs/mlx.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, Optional

SAMPLE = 4096  # Bytes of each tensor.
MAX_HEADER = 100_000_000  # As in safetensors.


def model_fields(model: str, adapter: Optional[str], draft: Optional[str], kv: str) -> Dict[str, str]:
    """OSError: a folder cannot be read. kv: "plain", or how keys and values are quantised."""
    fields = {"model": folder_digest(_folder_of(model)), "kv": kv, "mlx-lm": version("mlx-lm")}
    if adapter is not None:
        fields["adapter"] = folder_digest(Path(adapter))
    if draft is not None:
        fields["draft"] = folder_digest(_folder_of(draft))
    return fields


def folder_digest(folder: Path) -> str:
    """SHA-256, in hex, over all that decides what the model in the folder computes."""
    whole = hashlib.sha256()
    patterns = ("config.json", "adapter_config.json", "*.py")
    read = [path for pattern in patterns for path in folder.glob(pattern)]
    for path in sorted(read):
        _add(whole, path.name, path.read_bytes())
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.npz")]):
        _add(whole, path.name, _weights_digest(path).encode())
    return whole.hexdigest()


def _folder_of(model: str) -> Path:
    if Path(model).exists():
        return Path(model)
    from mlx_lm.utils import hf_repo_to_path

    return hf_repo_to_path(model)


def _weights_digest(path: Path) -> str:
    real = Path(os.path.realpath(path))
    if real.parent.name == "blobs" and re.fullmatch("[0-9a-f]{64}", real.name):
        return real.name
    digest = hashlib.sha256()
    status = real.stat()
    _add(digest, "size and time", f"{status.st_size} {status.st_mtime_ns}".encode())
    if real.suffix == ".safetensors":
        _add_samples(digest, real)
    return digest.hexdigest()


def _add_samples(digest: Any, path: Path) -> None:
    with open(path, "rb") as file:
        size = min(struct.unpack("<Q", file.read(8))[0], MAX_HEADER)
        header = file.read(size)
        _add(digest, "header", header)
        for name, entry in sorted(json.loads(header).items()):
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            file.seek(8 + size + begin)
            _add(digest, name, file.read(min(SAMPLE, end - begin)))


def _add(digest: Any, name: str, content: bytes) -> None:
    for part in (name.encode(), content):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
