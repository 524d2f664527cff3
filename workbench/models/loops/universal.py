"""Universal Transformer (Dehghani et al. 2019): looped, without a gate; halting is optional."""

from typing import Literal

from pydantic import model_validator

from workbench.models.loops.depth import DepthModel
from workbench.models.loops.depth_recurrent import LoopTableConfig
from workbench.recurrence.base import Recurrence
from workbench.recurrence.halting import AdaptiveHalting, Halt
from workbench.recurrence.update import LoopEmbedded
from workbench.registries import FAMILIES


class UniversalConfig(LoopTableConfig):
    """Config of a Universal Transformer."""

    halting: Literal["none", "act"] = "none"
    halt_eps: float = 0.01  # a position halts when its probabilities sum to more than 1 − eps
    halt_bias: float = -1.0  # initial bias; σ(−1) = .27

    @model_validator(mode="after")
    def _check_halting(self) -> "UniversalConfig":
        if not 0 < self.halt_eps < 1:
            raise ValueError(f"halt_eps={self.halt_eps} must lie between 0 and 1")
        return self


@FAMILIES.register("universal")
class Universal(DepthModel):
    """A looped model with h ← blocks(h + e[loop]); with `halting: act` each position can halt."""

    Config = UniversalConfig
    cfg: UniversalConfig

    def make_recurrence(self) -> Recurrence:
        loop_embed = self.cfg.make_loop_embed()
        if self.cfg.halting == "none":
            return LoopEmbedded(loop_embed)
        halt = Halt(self.cfg.d_model, self.cfg.halt_bias)
        return AdaptiveHalting(loop_embed, halt, self.cfg.halt_eps)
