"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor


class FileError(ValueError):
    """A file that is missing, broken or not what its name says."""


def read_text(path: Path) -> str:
    """A text file whole.

    Raises:
        FileError: The file is missing or no text.
    """
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{path} is no text in UTF-8") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece.

    Raises:
        FileError: There is no such folder, or it takes no such file.
    """
    with _whole(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file in one piece.

    Raises:
        FileError: There is no such folder, or it takes no such file.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with _whole(path) as unfinished:
        save_file(plain, unfinished, metadata=dict(metadata or {}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, on the CPU.

    Raises:
        FileError: The file is missing, truncated or no safetensors file.
    """
    with _opened(path) as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def read_shapes(path: Path) -> dict[str, torch.Size]:
    """The shape of each tensor of a safetensors file, by its head alone.

    Raises:
        FileError: The file is missing, truncated or no safetensors file.
    """
    with _opened(path) as opened:
        return {name: torch.Size(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118


def count_numbers(path: Path) -> int:
    """How many numbers the tensors of a safetensors file hold, by its head alone.

    Raises:
        FileError: The file is missing, truncated or no safetensors file.
    """
    return sum(shape.numel() for shape in read_shapes(path).values())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    try:
        with safe_open(path, framework="pt") as opened:
            yield opened
    except SafetensorError as error:
        raise FileError(f"{path} is truncated or no safetensors file ({error})") from None


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` once all is written, and goes if that fails."""
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path} cannot be written ({error})") from None
    finally:
        unfinished.unlink(missing_ok=True)
