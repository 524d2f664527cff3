"""Where a forward pass is: the loop, the columns of a pass, and the thread that runs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from workbench.hooks.passes import Passes


class LoopClock:
    """The loop that a forward pass is in; `loop` is None outside the recurrence."""

    def __init__(self) -> None:
        self.loop: int | None = None
        self.n_loops = 0  # of the present or the last forward pass
        self.valid: Tensor | None = None  # [loop batch] of the present or the last forward pass
        self.forwards = 0  # forward passes so far
        # Column of the sequence that each position of the present pass is, −1 where it is filling;
        # None where a pass holds the whole sequence
        self.columns: Tensor | None = None  # [batch width]
        self.passes: Passes | None = None  # of the present or the last forward pass, if it thinks
        self.given: int | None = None  # columns that a generation began with; None outside one
        self._lock = Lock()
        self._owner: int | None = None  # the thread that uses the model now
        self._depth = 0  # how many of its calls are open

    def __deepcopy__(self, memo: dict[int, object]) -> "LoopClock":
        return LoopClock()  # a copy of a model runs by itself; a lock cannot be copied

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads out while hooks are attached or a pass runs; calls may be nested.

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
        """Yield 0 … n_loops-1, holding `loop` at each, and leave it None afterwards."""
        self.n_loops = n_loops
        self.forwards += 1
        try:
            for loop in range(n_loops):
                self.loop = loop
                yield loop
        finally:
            self.loop = None
