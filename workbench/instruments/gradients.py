"""How much of the loss's gradient reaches each loop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import torch
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.hooks import HookPoint, loop_of
from workbench.instruments.reading import STATE

THOUGHT = "recurrence.hook_thought"
RAW = "recurrence.hook_state"  # where what a loop says is a mean, the states it is made of


class GradientByLoop:
    """Norm of the loss's gradient with respect to the state as each loop leaves it.

    The norm is over batch, positions and width, and over all forward passes inside `watch`. The
    loop is noted on the way forward: by the time of the backward pass the clock has moved on.
    """

    def __init__(self) -> None:
        self._squares: dict[int, float] = {}

    @contextmanager
    def watch(self, model: CanRecord) -> Iterator[None]:
        """Note the gradients of the backward passes of forwards run inside."""
        place = next(place for place in (RAW, STATE, THOUGHT) if place in model.hook_dict)
        # Sequences may hold no thought
        with model.hooks(fwd_hooks=[(place, self._listen)], must_fire=place != THOUGHT):
            yield

    @property
    def norms(self) -> list[float]:
        """One norm for each loop."""
        return [self._squares[loop] ** 0.5 for loop in sorted(self._squares)]

    def gather(self, total: Callable[[Tensor], Tensor], n_processes: int) -> None:
        """Take in what other processes noted of their rows.

        Args:
            total: The sum of a tensor over all processes.
            n_processes: By which each process's loss was multiplied, as averaging gradients needs.
        """
        loops = sorted(self._squares)
        squares = total(torch.tensor([self._squares[loop] for loop in loops]))
        self._squares = dict(zip(loops, (squares / n_processes**2).tolist(), strict=True))

    def _listen(self, tensor: Tensor, /, *, hook: HookPoint) -> None:
        if tensor.requires_grad:
            loop = cast(int, loop_of(hook))
            self._squares.setdefault(loop, 0.0)  # a loop that no gradient reaches has norm 0
            tensor.register_hook(partial(self._note, loop))

    def _note(self, loop: int, gradient: Tensor) -> None:
        square = float(gradient.detach().float().pow(2).sum())
        self._squares[loop] += square
