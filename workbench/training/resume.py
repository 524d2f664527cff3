"""Resume points of killed runs: weights, optimizer moments and random states, without pickles.

`resume/state.safetensors` holds tensors, `resume/state.json` plain values. The folder is replaced
as a whole, so that a kill at any moment leaves either the old point or the new one.
"""

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.settings.files import FileError, read_tensors, read_text, write_tensors, write_text
from workbench.settings.plain_json import fields_of, parse_json

FOLDER = "resume"
NEEDED = {
    "random": (lambda value: isinstance(value, dict), "an object"),
}


def save_point(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    random_states: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Write a resume point.

    Args:
        folder: The run's folder.
        model: The model, whose weights are saved in full precision.
        optimizer: The optimizer, whose moments are saved.
        state: Everything else that the trainer needs, as plain values.
        random_states: `random_state()` of each process; by default only that of this process.
    """
    fresh, present, old = (folder / f"{FOLDER}{end}" for end in (".new", "", ".old"))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
    plain = []
    for rank, one in enumerate([random_state()] if random_states is None else random_states):
        tensors |= {f"random{_of(rank)}.{name}": t for name, t in one["torch"].items()}
        plain.append({name: one[name] for name in ("python", "numpy")})
    others = {"random_of_others": plain[1:]} if len(plain) > 1 else {}
    write_tensors(fresh / "state.safetensors", tensors)
    write_text(fresh / "state.json", json.dumps(state | {"random": plain[0]} | others))
    if present.exists():  # else `old` is the only point, left by a kill between the two renames
        shutil.rmtree(old, ignore_errors=True)
        present.rename(old)
    fresh.rename(present)
    shutil.rmtree(old, ignore_errors=True)


def load_point(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int = 0
) -> dict[str, Any] | None:
    """Restore weights, moments and random states; return the plain values, or None without a point.

    A process whose rank was not there when the point was written takes the random state of rank 0.

    Raises:
        FileError: The point exists but is broken.
    """
    present = folder / FOLDER
    if not present.exists():  # killed between the two renames
        present = folder / f"{FOLDER}.old"
    if not present.exists():
        return None
    tensors = read_tensors(present / "state.safetensors")
    path = present / "state.json"
    state: dict[str, Any] = fields_of(parse_json(read_text(path), str(path)), NEEDED, str(path))
    try:
        return _restored(model, optimizer, state, tensors, rank)
    except FileError:
        raise
    except Exception as error:  # whatever torch, numpy and Python raise for a foreign state
        first = str(error).partition("\n")[0]
        raise FileError(
            f"{present} is broken and cannot be taken up ({first}); start anew in another folder"
        ) from None


def _restored(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    tensors: dict[str, Tensor],
    rank: int,
) -> dict[str, Any]:
    """Restore everything; return the remaining plain values."""
    model.load_state_dict(_below(tensors, "model."))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below(tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        moments.setdefault(int(index), {})[moment] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
    generators = [state.pop("random"), *state.pop("random_of_others", [])]
    rank = rank if rank < len(generators) else 0
    version, internal, gauss = generators[rank]["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(_numpy(generators[rank]["numpy"]))
    _restore_torch_random(_below(tensors, f"random{_of(rank)}."))
    return state


def random_state() -> dict[str, Any]:
    """Return this process's random states: plain for Python and numpy, tensors for torch."""
    version, internal, gauss = random.getstate()
    return {
        "python": [version, list(internal), gauss],
        "numpy": _plain(np.random.get_state(legacy=False)),
        "torch": _torch_random(),
    }


def _of(rank: int) -> str:
    """Return the suffix for the names of a process's random states; empty for rank 0."""
    return f"_{rank}" if rank else ""


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _torch_random() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        devices = torch.cuda.get_rng_state_all()
        states |= {f"cuda{index}": state for index, state in enumerate(devices)}
    return states


def _restore_torch_random(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["cpu"])
    devices = _below(tensors, "cuda")
    if torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([devices[str(index)] for index in range(len(devices))])


def _plain(state: Any) -> Any:
    """Return numpy's random state with its array as a list."""
    return state | {"state": state["state"] | {"key": state["state"]["key"].tolist()}}


def _numpy(state: Any) -> Any:
    key = np.array(state["state"]["key"], dtype=np.uint32)
    return state | {"state": state["state"] | {"key": key}}
