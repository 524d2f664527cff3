"""Rotary positions (Su et al. 2021), the halves of a head rotated against each other."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.config import ModelConfig


class Angles(NamedTuple):
    """How far the heads of a batch are turned at each position."""

    cos: Float[Tensor, "rows pos 1 d_head"]
    sin: Float[Tensor, "rows pos 1 d_head"]  # of the first half negative

    def turn(self, x: Float[Tensor, "batch pos head d_head"]) -> Tensor:
        """Turn each pair (x_i, x_{i + d_head/2}) by its angle."""
        swapped = x.roll(x.shape[-1] // 2, dims=-1)
        return torch.addcmul(x * self.cos, swapped, self.sin)


class Rotary(nn.Module):
    """Angles of each position: position·base^(−2i/d_head) for the pair i."""

    cos: Tensor
    sin: Tensor

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        pairs = torch.arange(cfg.d_head // 2, dtype=torch.float64)
        frequency = cfg.rotary_base ** (-2 * pairs / cfg.d_head)
        angle = torch.arange(cfg.n_ctx, dtype=torch.float64)[:, None] * frequency  # [n_ctx pair]
        cos, sin = angle.cos().float(), angle.sin().float()
        self.register_buffer("cos", torch.cat((cos, cos), -1), persistent=False)
        self.register_buffer("sin", torch.cat((-sin, sin), -1), persistent=False)

    def forward(self, positions: Int[Tensor, "rows pos"]) -> Angles:
        return Angles(self.cos[positions][:, :, None], self.sin[positions][:, :, None])
