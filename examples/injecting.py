"""A family: the input is injected into every loop, as in Huginn (Geiping et al. 2025).

workbench --plugin examples/injecting.py train two-hop-small-looped --set model.family=injecting
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench import FAMILIES
from workbench.hooks import HookPoint
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Passage
from workbench.settings.config import LoopedConfig


class Inject(Continue):
    """Each loop starts from W [state; the state at loop 0]."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.W_inject = nn.Parameter(torch.cat((torch.eye(d_model), torch.eye(d_model))) / 2**0.5)
        self.hook_input = HookPoint()  # [batch pos d_model]

    def begin(
        self, state: Float[Tensor, "batch pos d_model"], loop: int, passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        return torch.cat((state, self.hook_input(passage.start)), dim=-1) @ self.W_inject


class InjectingConfig(LoopedConfig):
    """Shape of a looped model with input injection, between a prelude and a coda."""

    n_prelude: int = 1
    n_coda: int = 1


@FAMILIES.register("injecting")
class Injecting(DepthModel):
    """h ← blocks(W [h; e]), where e is what the prelude makes of the question."""

    Config = InjectingConfig
    cfg: InjectingConfig

    def make_recurrence(self) -> Inject:
        return Inject(self.cfg.d_model)
