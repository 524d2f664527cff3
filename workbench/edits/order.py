"""Edits of the order of loops: repeat one, swap two.

Loops share their blocks and differ only in the loop embedding, so these edits change which loop
embedding each loop gets. Without a loop embedding all loops are the same and there is no order.
"""

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.base import LOOP_EMBED, CompiledHooks, Edit, looping
from workbench.hooks import HookPoint, loop_of
from workbench.registries import EDITS
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


class Reorder(Edit):
    """Base class of edits that change which loop embedding each loop gets."""

    names_touched_loops: ClassVar[bool] = False

    @model_validator(mode="after")
    def _check_everywhere(self) -> "Reorder":
        if self.positions is not None:
            raise ValueError("the loop embedding is the same at all positions; leave positions out")
        return self

    @abstractmethod
    def told(self, loop: int) -> int:
        """Return the index of the loop whose embedding `loop` gets."""

    def check_within(self, n_loops: int) -> None:
        """Check that a forward pass runs all the loops that the edit names.

        Raises:
            ConfigError: A loop is out of range.
        """
        for loop in self.loops or ():
            if not 0 <= loop < n_loops:
                raise ConfigError(
                    f"there is no loop {loop} to put elsewhere; this pass runs {n_loops} loops, "
                    f"numbered 0 to {n_loops - 1}"
                )

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        recurrence = looping(self, model).recurrence
        if not recurrence.has_loop_embedding:
            raise ConfigError(
                f"the loops of a {model.cfg.family} model are alike, for it has no loop embedding; "
                "there is no order to change"
            )

        def tell(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            self.check_within(hook.clock.n_loops)
            loop = loop_of(hook)
            if loop is None or self.told(loop) == loop:
                return None
            return recurrence.loop_embedding(self.told(loop)).expand_as(tensor)

        return [(LOOP_EMBED, tell)]


@EDITS.register("repeat", example={"loops": [0]})
class Repeat(Reorder):
    """Run a loop `times` more times; later loops are delayed, and the last ones are dropped.

    The number of loops in a pass does not change; increase it to keep the last loops.
    """

    do: Literal["repeat"] = "repeat"
    times: int = 1

    @model_validator(mode="after")
    def _check_loop(self) -> "Repeat":
        if self.loops is None or len(self.loops) != 1:
            raise ValueError("repeat: name the one loop to repeat")
        self.check_at_least(1, "times")
        return self

    def check_within(self, n_loops: int) -> None:
        super().check_within(n_loops)
        if self.loops == [n_loops - 1]:
            raise ConfigError(
                f"repeat: loop {n_loops - 1} is the last of this pass; ask for more loops"
            )

    def told(self, loop: int) -> int:
        (again,) = self.loops or [0]
        return loop if loop <= again else max(again, loop - self.times)


@EDITS.register("swap", example={"loops": [0, 1]})
class Swap(Reorder):
    """Run two loops in each other's place."""

    do: Literal["swap"] = "swap"

    @model_validator(mode="after")
    def _check_loops(self) -> "Swap":
        if self.loops is None or len(set(self.loops)) != 2 or len(self.loops) != 2:
            raise ValueError("swap: name the two loops to swap")
        return self

    def told(self, loop: int) -> int:
        one, other = self.loops or [0, 0]
        return {one: other, other: one}.get(loop, loop)
