"""Rotary positions (Su et al. 2021), the halves of a head rotated against each other."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.config import ModelConfig


class Rotary(nn.Module):
    """Turn each pair (x_i, x_{i + d_head/2}) by position·base^(−2i/d_head)."""

    cos: Tensor
    sin: Tensor

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        pairs = torch.arange(cfg.d_head // 2, dtype=torch.float64)
        frequency = cfg.rotary_base ** (-2 * pairs / cfg.d_head)
        angle = torch.arange(cfg.n_ctx, dtype=torch.float64)[:, None] * frequency  # [n_ctx pair]
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch pos head d_head"],
        positions: Int[Tensor, "rows pos"],
    ) -> Float[Tensor, "batch pos head d_head"]:
        cos = self.cos[positions][:, :, None].to(x.dtype)  # [rows pos 1 pair]
        sin = self.sin[positions][:, :, None].to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
