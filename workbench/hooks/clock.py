"""The state of a forward pass: its loop, the columns of a pass, and the thread that runs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from workbench.hooks.passes import Passes


class LoopClock:
    """A counter of the loop that a forward pass is in; `loop` is None outside the recurrence."""

    def __init__(self) -> None:
        self.loop: int | None = None
        self.n_loops = 0  # of the current or most recent forward pass
        self.valid: Tensor | None = None  # [loop batch] of the current or most recent pass
        self.forwards = 0  # forward passes so far
        # Sequence column of each position in the current pass, −1 for filler; None if a pass holds
        # the whole sequence
        self.columns: Tensor | None = None  # [batch width]
        # Of the current or most recent forward pass, if the model thinks
        self.passes: Passes | None = None
        # Number of columns that generation started from; None outside `generate`
        self.given: int | None = None
        self._lock = Lock()
        self._owner: int | None = None  # the thread that is using the model
        self._depth = 0  # nesting depth of that thread's `held` calls

    def __deepcopy__(self, memo: dict[int, object]) -> "LoopClock":
        return LoopClock()  # a copied model runs on its own, and a lock cannot be copied

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock out other threads while hooks are attached or a pass runs; calls may be nested.

        Raises:
            RuntimeError: Another thread holds the model.
        """
        me = get_ident()
        with self._lock:
            if self._owner not in (None, me):
                raise RuntimeError(
                    "another thread is using this model, whose hooks and loop count they would "
                    "share; give each thread a copy of its own, model.twin(), which shares the "
                    "weights"
                )
            self._owner = me
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if not self._depth:
                    self._owner = None

    def ticks(self, n_loops: int) -> Iterator[int]:
        """Yield 0 … n_loops-1, setting `loop` to each, and reset `loop` to None at the end."""
        self.n_loops = n_loops
        self.forwards += 1
        try:
            for loop in range(n_loops):
                self.loop = loop
                yield loop
        finally:
            self.loop = None
