"""The point from which a killed run goes on: weights, moments and random states, without pickles.

`resume/state.safetensors` holds tensors, `resume/state.json` plain values. The folder is exchanged
whole, so that a kill at any moment leaves the old point or the new one.
"""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.files import FileError, read_tensors, read_text, write_tensors, write_text

FOLDER = "resume"


def save_point(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Write a point to go on from.

    Args:
        folder: The run's folder.
        model: Its weights are kept in full precision.
        optimizer: Its moments are kept.
        state: What else the trainer must know; plain values.
    """
    fresh, present, old = (folder / f"{FOLDER}{end}" for end in (".new", "", ".old"))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
    tensors |= _torch_random()
    version, internal, gauss = random.getstate()
    generators = {
        "python": [version, list(internal), gauss],
        "numpy": _plain(np.random.get_state(legacy=False)),
    }
    write_tensors(fresh / "state.safetensors", tensors)
    write_text(fresh / "state.json", json.dumps(state | {"random": generators}))
    if present.exists():  # else `old` is the only point, left by a kill between the two renames
        shutil.rmtree(old, ignore_errors=True)
        present.rename(old)
    fresh.rename(present)
    shutil.rmtree(old, ignore_errors=True)


def load_point(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any] | None:
    """Put weights, moments and random states back; return the plain values, or None without one.

    Raises:
        FileError: The point is there but broken.
    """
    present = folder / FOLDER
    if not present.exists():  # killed between the two renames
        present = folder / f"{FOLDER}.old"
    if not present.exists():
        return None
    tensors = read_tensors(present / "state.safetensors")
    try:
        state: dict[str, Any] = json.loads(read_text(present / "state.json"))
    except json.JSONDecodeError as error:
        raise FileError(f"{present / 'state.json'} is broken ({error})") from None
    model.load_state_dict(_below(tensors, "model."))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below(tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        moments.setdefault(int(index), {})[moment] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
    generators = state.pop("random")
    version, internal, gauss = generators["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(_numpy(generators["numpy"]))
    _restore_torch_random(tensors)
    return state


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _torch_random() -> dict[str, Tensor]:
    states = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        devices = torch.cuda.get_rng_state_all()
        states |= {f"random.cuda{index}": state for index, state in enumerate(devices)}
    return states


def _restore_torch_random(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["random.cpu"])
    devices = _below(tensors, "random.cuda")
    if torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([devices[str(index)] for index in range(len(devices))])


def _plain(state: Any) -> Any:
    """Numpy's random state with its array as a list."""
    return state | {"state": state["state"] | {"key": state["state"]["key"].tolist()}}


def _numpy(state: Any) -> Any:
    key = np.array(state["state"]["key"], dtype=np.uint32)
    return state | {"state": state["state"] | {"key": key}}
