"""Gates between loops, which scale what is passed on."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint


class FixedGate(nn.Module):
    """A constant gate, the same for all positions and loops.

    hook_post  the constant, expanded to all positions  [batch pos 1]
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.hook_post = HookPoint()

    def forward(self, decoded: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos 1"]:
        return self.hook_post(decoded.new_full((*decoded.shape[:2], 1), self.share))


class LearnedGate(nn.Module):
    """A gate σ(⟨w, Φ⟩ + b) per position, with d_model + 1 parameters (DiscoLoop, learned gate).

    w starts at zero, so that the gate starts at σ(b) for every position.

    hook_pre   logits of the gate         [batch pos 1]
    hook_post  the gate value, in (0, 1)  [batch pos 1]
    """

    def __init__(self, d_model: int, bias: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d_model))
        self.b = nn.Parameter(torch.full((), bias))
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def forward(self, decoded: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos 1"]:
        logits = self.hook_pre((decoded @ self.w + self.b)[..., None])
        return self.hook_post(logits.sigmoid())
