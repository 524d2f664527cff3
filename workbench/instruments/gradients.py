"""Norm of the loss's gradient at each loop."""

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
RAW = "recurrence.hook_state"  # if a loop's output is a mean of states, the states themselves


class GradientByLoop:
    """Norm of the loss's gradient with respect to each loop's output state.

    The norm is over batch, positions and width, and over all forward passes inside `watch`. The
    loop is recorded in the forward pass, because the clock has moved on by the backward pass.
    """

    def __init__(self) -> None:
        self._squares: dict[int, float] = {}

    @contextmanager
    def watch(self, model: CanRecord) -> Iterator[None]:
        """Record the gradients of all forward passes that are run in this context."""
        place = next(place for place in (RAW, STATE, THOUGHT) if place in model.hook_dict)
        # A sequence may have no thoughts, so that the hook does not fire
        with model.hooks(fwd_hooks=[(place, self._listen)], must_fire=place != THOUGHT):
            yield

    @property
    def norms(self) -> list[float]:
        """The gradient norm of each loop, in order."""
        return [self._squares[loop] ** 0.5 for loop in sorted(self._squares)]

    def gather(self, total: Callable[[Tensor], Tensor], n_processes: int) -> None:
        """Add the gradients that other processes recorded for their rows.

        Args:
            total: Function that sums a tensor over all processes.
            n_processes: Factor by which each process's loss was multiplied, so that averaging the
                gradients gives their sum.
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
