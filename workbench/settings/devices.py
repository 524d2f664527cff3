"""Which devices there are."""

import torch

from workbench.settings.config import nearest


def devices() -> list[str]:
    """All usable devices, the fastest first."""
    found = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]


def best_device() -> str:
    """The fastest usable device."""
    return devices()[0]


def check_device(name: str) -> str:
    """The same name, if there is such a device here.

    Raises:
        ValueError: There is none.
    """
    known = devices()
    if name not in known and not (name == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"no device {name!r} here; {nearest(name, known)}")
    return name
