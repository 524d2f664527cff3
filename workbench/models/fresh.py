"""Fresh weights, drawn by one thread at a time: torch has one random state for all of them."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import torch

Model = TypeVar("Model", bound=torch.nn.Module)
_DRAWING = Lock()


def fresh(make: Callable[[], Model], seed: int | None = None) -> Model:
    """Build a model; with a seed of its own, torch's random state stays as it was."""
    with _DRAWING:
        if seed is None:
            return make()
        with torch.random.fork_rng(devices=[]):  # torch.manual_seed would seed the GPUs as well
            torch.default_generator.manual_seed(seed)
            return make()
