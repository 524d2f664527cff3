"""Files that are written whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor


class FileError(ValueError):
    """A file that is missing, broken or not what its name says."""


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text)
    os.replace(unfinished, path)


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file in one piece."""
    unfinished = path.with_name(path.name + ".unfinished")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(plain, unfinished, metadata=dict(metadata or {}))
    os.replace(unfinished, path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, on the CPU.

    Raises:
        FileError: The file is missing, truncated or no safetensors file.
    """
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    try:
        with safe_open(path, framework="pt") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise FileError(f"{path} is truncated or no safetensors file ({error})") from None
