"""Runs uploaded as a zip, checked before their weights are loaded.

    mine.zip
        recipe.yaml · history.jsonl · model.safetensors · card.md · steps/{step}.safetensors

The files may lie in one enclosing folder. Any other file is refused by name. The checks are, in
this order: sizes, the recipe, and the shapes of all weights (read from the safetensors headers).
"""

import lzma
import re
import stat
import struct
import tempfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from zipfile import BadZipFile, ZipFile, ZipInfo

import torch

from workbench.models import build_model, model_config
from workbench.runs import STRANGER, Run, check_fits
from workbench.settings.files import FileError, read_dtypes, read_shapes, read_text, write_text

LAYOUT = re.compile(
    r"recipe\.yaml|history\.jsonl|model\.safetensors|card\.md|steps/\d+\.safetensors"
)
NEEDED = "recipe.yaml"
MOST_FILES = 2_000
MOST_BYTES = 1_000_000_000  # of all files, unpacked
MOST_TENSORS = 100_000  # in one file of weights
# Exceptions that zipfile raises for a broken archive, documented or not
BROKEN = (
    *(BadZipFile, NotImplementedError, EOFError, zlib.error, lzma.LZMAError),
    *(ValueError, OSError, RuntimeError, struct.error),
)
DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32")  # of weights; our models use no others
NEEDED_OF_A_LINE = ("epoch", "stage", "loss", "seconds")  # beyond what every history needs
NAME = re.compile(r"\w[\w.-]*")


def unpack_run(archive: BytesIO | Path, root: Path, name: str) -> Path:
    """Unpack a zipped run into `root`; nothing is left there unless every check passes.

    Args:
        archive: A zip file.
        root: The folder of runs, such as `runs/`; created if it does not exist.
        name: Name of the run's folder.

    Returns:
        The run's folder.

    Raises:
        FileError: The archive is not a zip, holds a file that is not part of a run or is too large;
            its weights do not fit its recipe; or a run of that name exists.
        ConfigError: The recipe is invalid.
    """
    if not NAME.fullmatch(name):
        raise FileError(f"a run cannot be called {name!r}; use letters, digits, '.', '-' and '_'")
    target = root / name
    if target.exists():
        raise FileError(f"{target} is there already; choose another name")
    root.mkdir(parents=True, exist_ok=True)
    # Unpack one level deeper, so that a search for runs does not find one still being checked
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=root) as folder:
        unpacked = Path(folder) / "run" / name
        try:
            with ZipFile(archive) as opened:
                _extract(opened, files_of(opened), unpacked)
        except FileError:
            raise
        except BROKEN as error:
            raise FileError(f"{name} cannot be unpacked: {error}") from None
        write_text(unpacked / STRANGER, "This run was uploaded; it may read nothing elsewhere.\n")
        check_run(unpacked)
        unpacked.rename(target)
    return target


def files_of(archive: ZipFile) -> dict[str, ZipInfo]:
    """Return the entries of an archive by their path in the run's folder.

    Raises:
        FileError: An entry is not part of a run, is a duplicate or is encrypted; there are too many
            entries or they are too large; or there is no recipe.
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
    """Refuse a run with an invalid recipe or weights that do not fit it; no weights are loaded.

    The cheapest checks come first, so that a small file cannot cause much work.
    """
    run = Run(folder)
    if (card := folder / "card.md").exists():
        read_text(card)
    _check_history(run)
    _check_size(run, folder)
    with torch.device("meta"):
        model = build_model(model_config(run.recipe.model, f"recipe of {run.name}"))
    for path in _weights(run):
        check_fits(model, read_shapes(path), path.relative_to(folder))
    if run.task.d_vocab > model.cfg.d_vocab:
        raise FileError(
            f"{run.name}: the task has {run.task.d_vocab} words, the model {model.cfg.d_vocab}"
        )


def _check_history(run: Run) -> None:
    """Refuse measurements that lack the fields drawn in figures."""
    for number, record in enumerate(run.history, 1):
        for field in NEEDED_OF_A_LINE:
            if field not in record:
                raise FileError(f"history.jsonl, line {number} lacks the field {field!r}")


def _check_size(run: Run, folder: Path) -> None:
    """Refuse a config with more layers than there are tensors, before any layer is built."""
    cfg = model_config(run.recipe.model, f"recipe of {run.name}")
    n_layers = cfg.n_prelude + cfg.n_layers + cfg.n_coda
    for path in _weights(run):
        dtypes = read_dtypes(path)
        wrong = sorted(set(dtypes.values()) - set(DTYPES))
        where = path.relative_to(folder)
        if wrong or len(dtypes) > MOST_TENSORS:
            found = f"numbers of type {wrong[0]}" if wrong else f"{len(dtypes):,} tensors"
            raise FileError(f"{where} holds {found}, which no model of ours has")
        if len(dtypes) < n_layers:
            raise FileError(
                f"{where} holds {len(dtypes)} tensors, which cannot be {n_layers:,} layers"
            )


def _weights(run: Run) -> list[Path]:
    return [run.weights_path(step) for step in run.steps] + (
        [run.weights_path()] if run.is_finished else []
    )


def _extract(archive: ZipFile, files: Mapping[str, ZipInfo], folder: Path) -> None:
    for path, entry in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # Copy in chunks: an entry may inflate to far more than its stated size
        with archive.open(entry) as packed, target.open("wb") as plain:
            copyfileobj(packed, plain, 1 << 16)


def _is_link(entry: ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)
