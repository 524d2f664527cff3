"""A run as a zip, as one is given it: checked before anything in it is opened.

    mine.zip
        recipe.yaml · history.jsonl · model.safetensors · card.md · steps/{step}.safetensors

with or without one folder around them. Anything else is refused by name, and so is whatever does
not fit: sizes first, then the recipe, then the shapes of all weights by the heads of their files.
"""

import re
import stat
import tempfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

import torch

from workbench.files import FileError, read_shapes
from workbench.models import build_model, model_config
from workbench.runs import Run, check_fits

LAYOUT = re.compile(
    r"recipe\.yaml|history\.jsonl|model\.safetensors|card\.md|steps/\d+\.safetensors"
)
NEEDED = "recipe.yaml"
MOST_FILES = 2_000
MOST_BYTES = 1_000_000_000  # of all files, unpacked
NAME = re.compile(r"\w[\w.-]*")


def unpack_run(archive: BytesIO | Path, root: Path, name: str) -> Path:
    """Put a zipped run below `root`; nothing is left there unless all of it is right.

    Args:
        archive: A zip file.
        root: Where runs lie, `runs/` for one; made if there is none.
        name: What the run's folder is to be called.

    Returns:
        The run's folder.

    Raises:
        FileError: The archive is no zip, holds what is no part of a run or is too large, or its
            weights do not fit its recipe; or there is a run of that name.
        ConfigError: The recipe says something wrong.
    """
    if not NAME.fullmatch(name):
        raise FileError(f"a run cannot be called {name!r}; use letters, digits, '.', '-' and '_'")
    target = root / name
    if target.exists():
        raise FileError(f"{target} is there already; choose another name")
    root.mkdir(parents=True, exist_ok=True)
    # A folder in a folder, so that nobody finds a run there that is still being looked at
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=root) as folder:
        unpacked = Path(folder) / "run" / name
        try:
            with ZipFile(archive) as opened:
                _extract(opened, files_of(opened), unpacked)
        except (BadZipFile, NotImplementedError, EOFError, zlib.error) as error:
            raise FileError(f"{name} cannot be unpacked: {error}") from None
        check_run(unpacked)
        unpacked.rename(target)
    return target


def files_of(archive: ZipFile) -> dict[str, ZipInfo]:
    """The entries that are files of a run, by their path in the run's folder.

    Raises:
        FileError: An entry is no part of a run, stands twice or is encrypted; there are too many or
            they are too large; or there is no recipe.
    """
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise FileError(
            f"the archive is too large for a run: at most {MOST_FILES:,} files and "
            f"{MOST_BYTES // 10**6:,} MB unpacked"
        )
    around = {PurePosixPath(entry.filename).parts[0] for entry in entries if entry.filename}
    folder = f"{around.pop()}/" if len(around) == 1 else ""
    if any(entry.filename == NEEDED for entry in entries):
        folder = ""
    found: dict[str, ZipInfo] = {}
    for entry in entries:
        path = entry.filename.removeprefix(folder)
        if not LAYOUT.fullmatch(path) or _is_link(entry):
            raise FileError(
                f"{entry.filename!r} is no file of a run; an archive holds recipe.yaml, "
                "history.jsonl, model.safetensors, card.md and steps/NUMBER.safetensors alone"
            )
        if entry.flag_bits & 1 or path in found:
            reason = "stands twice" if path in found else "is encrypted"
            raise FileError(f"{entry.filename!r} {reason} in the archive")
        found[path] = entry
    if NEEDED not in found:
        raise FileError(f"the archive is no run: it lacks {NEEDED}")
    return found


def check_run(folder: Path) -> None:
    """Refuse a run whose recipe is wrong or whose weights do not fit it; no weights are loaded."""
    run = Run(folder)
    with torch.device("meta"):
        model = build_model(model_config(run.recipe.model, f"recipe of {run.name}"))
    weights = [folder / "steps" / f"{step}.safetensors" for step in run.steps]
    if run.is_finished:
        weights.append(folder / "model.safetensors")
    for path in weights:
        check_fits(model, read_shapes(path), path.relative_to(folder))
    if run.task.d_vocab > model.cfg.d_vocab:
        raise FileError(
            f"{run.name}: the task has {run.task.d_vocab} words, the model {model.cfg.d_vocab}"
        )
    _ = run.history


def _extract(archive: ZipFile, files: Mapping[str, ZipInfo], folder: Path) -> None:
    for path, entry in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(entry))  # never more than the size that it states


def _is_link(entry: ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)
