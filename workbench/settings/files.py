"""Reading files, and writing them atomically (completely or not at all)."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from workbench.settings.config import FileError
from workbench.settings.plain_json import is_file, read_text

__all__ = [
    "FileError",
    "count_numbers",
    "hash_tensors",
    "kept_hash",
    "make_folder",
    "read_dtypes",
    "read_shapes",
    "read_tensors",
    "read_text",
    "write_tensors",
    "write_text",
]


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically.

    Raises:
        FileError: The folder does not exist, or the file cannot be written there.
    """
    with _whole(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file atomically.

    Raises:
        FileError: The folder does not exist, or the file cannot be written there.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with _whole(path) as unfinished:
        save_file(plain, unfinished, metadata=dict(metadata or {}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a safetensors file, on the CPU.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    with _opened(path) as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def read_shapes(path: Path) -> dict[str, torch.Size]:
    """Return the shape of each tensor of a safetensors file, reading only its header.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    with _opened(path) as opened:
        return {name: torch.Size(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118


def read_dtypes(path: Path) -> dict[str, str]:
    """Return the dtype of each tensor of a safetensors file (`BF16`, …), reading only its header.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    with _opened(path) as opened:
        return {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118


def count_numbers(path: Path) -> int:
    """Count the numbers in all tensors of a safetensors file, reading only its header.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    return sum(shape.numel() for shape in read_shapes(path).values())


def hash_tensors(path: Path) -> str:
    """Return the first 16 hex digits of a SHA-256 over the tensors of a safetensors file.

    The tensors are hashed in the order of their names. Names, dtypes, shapes and bytes count; their
    order in the file does not.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    digest = sha256()
    tensors = read_tensors(path)
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=256)
def _hashed(path: str, written_at: int, size: int) -> str:
    return hash_tensors(Path(path))


def kept_hash(path: Path) -> str:
    """Return `hash_tensors(path)`, recomputed only if the file has changed since the last call.

    Raises:
        FileError: The file is missing, truncated or not a safetensors file.
    """
    try:
        found = path.stat()
    except OSError:
        raise FileError(f"{path} does not exist") from None
    return _hashed(str(path.resolve()), found.st_mtime_ns, found.st_size)


def make_folder(path: Path) -> None:
    """Make a folder and its parents if they do not exist.

    Raises:
        FileError: The folder cannot be made, or the path is a file.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise FileError(f"the folder {path!s:.400} cannot be made ({error})") from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not is_file(path):
        raise FileError(f"{path} does not exist")
    try:
        with safe_open(path, framework="pt") as opened:
            yield opened
    except (SafetensorError, OSError) as error:
        raise FileError(f"{path} is truncated or no safetensors file ({error})") from None


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` once writing succeeds and is removed otherwise.

    Links are followed. A device or a pipe is written to directly, because it cannot be replaced.
    """
    try:
        target = path.resolve()
        kind = target.stat().st_mode if target.exists() else stat.S_IFREG
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{path!s:.400} cannot be written ({error})") from None
    if stat.S_ISDIR(kind):
        raise FileError(f"{path} is a folder; name a file")
    if not stat.S_ISREG(kind):
        with _said_of(path):
            yield target
        return
    # A unique name per writer, so that concurrent writers do not share a file
    unfinished = target.with_name(f"{target.name}.{os.getpid()}-{uuid4().hex[:8]}.unfinished")
    try:
        with _said_of(path):
            yield unfinished
            os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path!s:.400} cannot be written ({error})") from None
