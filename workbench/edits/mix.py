"""Edit between successive thoughts: a training-free mix."""

from typing import Literal, cast

from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.base import THOUGHT, CompiledHooks, Edit, most_thoughts, thinking
from workbench.hooks import HookPoint, loop_of
from workbench.registries import EDITS
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


@EDITS.register("mix", example={"alpha": 0.25, "loops": [1]})
class Mix(Edit):
    """Mix every thought with the previous, already mixed one: h'ₜ ← (1−α)·h'ₜ + α·h'ₜ₋₁.

    α is a fixed scalar at inference and nothing is trained: Wang et al. 2024, as described in AGCLR
    (arXiv 2606.07720, section 2). The first thought has no previous one and does not change.
    """

    do: Literal["mix"] = "mix"
    alpha: float = 0.5

    @model_validator(mode="after")
    def _check_everywhere(self) -> "Mix":
        if self.positions is not None:
            raise ValueError("mix: a thought has no positions; leave positions out")
        if self.loops is not None and min(self.loops, default=0) < 1:
            raise ValueError("mix: thought 0 has none before it; name loops from 1 on")
        return self

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        thinking(self, model)
        held: dict[str, Tensor] = {}
        own = most_thoughts(model, batch)

        def mix(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            loop = cast(int, loop_of(hook))
            n_thoughts = hook.clock.n_loops - 1
            if n_thoughts >= own:  # else this pass runs fewer thoughts than the questions have
                self._check_loops(n_thoughts)
            if not loop or (self.loops is not None and loop not in self.loops):
                held["thought"] = tensor
                return None
            held["thought"] = (1 - self.alpha) * tensor + self.alpha * held["thought"]
            return held["thought"]

        return [(THOUGHT, mix)]

    def _check_loops(self, n_thoughts: int) -> None:
        if n_thoughts < 2:
            raise ConfigError("mix acts between two thoughts; these rows have one at most")
        if self.loops is not None and min(self.loops) >= n_thoughts:
            raise ConfigError(
                f"mix: there is no thought {min(self.loops)}; these rows have {n_thoughts}, "
                f"numbered 0 to {n_thoughts - 1}"
            )
