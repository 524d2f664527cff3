"""Fresh weights, drawn under a lock because all threads share torch's random state."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import torch

Model = TypeVar("Model", bound=torch.nn.Module)
_DRAWING = Lock()


def fresh(make: Callable[[], Model], seed: int | None = None) -> Model:
    """Build a model; if a seed is given, leave torch's random state unchanged."""
    with _DRAWING:
        if seed is None:
            return make()
        with torch.random.fork_rng(devices=[]):  # torch.manual_seed would seed the GPUs as well
            torch.default_generator.manual_seed(seed)
            return make()
