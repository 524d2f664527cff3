"""The Universal Transformer (Dehghani et al. 2019): weight-tied, without a gate; may halt."""

from typing import Literal

from pydantic import model_validator

from workbench.models.loops.depth import DepthModel
from workbench.models.loops.depth_recurrent import LoopTableConfig
from workbench.recurrence.base import Recurrence
from workbench.recurrence.halting import AdaptiveHalting, Halt
from workbench.recurrence.update import LoopEmbedded
from workbench.registries import FAMILIES


class UniversalConfig(LoopTableConfig):
    """Shape of a Universal Transformer."""

    halting: Literal["none", "act"] = "none"
    halt_eps: float = 0.01  # a position stops when its probabilities add up to 1 − eps
    halt_bias: float = -1.0  # at the start; σ(−1) = .27

    @model_validator(mode="after")
    def _check_halting(self) -> "UniversalConfig":
        if not 0 < self.halt_eps < 1:
            raise ValueError(f"halt_eps={self.halt_eps} must lie between 0 and 1")
        return self


@FAMILIES.register("universal")
class Universal(DepthModel):
    """h ← blocks(h + e[loop]); with `halting: act` each position stops by itself."""

    Config = UniversalConfig
    cfg: UniversalConfig

    def make_recurrence(self) -> Recurrence:
        loop_embed = self.cfg.make_loop_embed()
        if self.cfg.halting == "none":
            return LoopEmbedded(loop_embed)
        halt = Halt(self.cfg.d_model, self.cfg.halt_bias)
        return AdaptiveHalting(loop_embed, halt, self.cfg.halt_eps)
