"""The available devices."""

import torch

from workbench.settings.config import nearest


def devices() -> list[str]:
    """Return all usable devices, fastest first."""
    found = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]


def best_device() -> str:
    """Return the fastest usable device."""
    return devices()[0]


def check_device(name: str) -> str:
    """Return the name unchanged if this machine has such a device.

    Raises:
        ValueError: This machine has no such device.
    """
    known = devices()
    if name not in known and not (name == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"no device {name!r} here; {nearest(name, known)}")
    return name
