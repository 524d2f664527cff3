"""DiscoLoop (arXiv 2607.00341): looped, with a discrete channel beside the state."""

from typing import Literal

from workbench.models.loops.depth import DepthModel
from workbench.models.loops.ponder import PhiConfig
from workbench.recurrence.base import Recurrence
from workbench.recurrence.discrete import MixDecoded
from workbench.recurrence.gate import FixedGate, LearnedGate
from workbench.registries import FAMILIES


class DiscoLoopConfig(PhiConfig):
    """Config of a DiscoLoop model."""

    alpha: float | Literal["learned"] = 1.0
    alpha_bias: float = 0.0  # initial bias of the learned gate; σ(0) = .5


@FAMILIES.register("discoloop")
class DiscoLoop(DepthModel):
    """A looped model with next state H + α·RMSNorm(Φ(H)); the last loop's output is not mixed."""

    Config = DiscoLoopConfig
    cfg: DiscoLoopConfig

    def make_recurrence(self) -> Recurrence:
        cfg = self.cfg
        learned = LearnedGate(cfg.d_model, cfg.alpha_bias)
        gate = learned if cfg.alpha == "learned" else FixedGate(cfg.alpha)
        return MixDecoded(cfg.make_phi(), gate)
