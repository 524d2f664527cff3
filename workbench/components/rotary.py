"""Rotary positions (Su et al. 2021); a pair joins dimension i with i + d_head/2."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.settings.config import ModelConfig, RotaryScaling


class Angles(NamedTuple):
    """Cosine and sine of the rotation angle at each position of a batch."""

    cos: Float[Tensor, "rows pos 1 d_head"]
    sin: Float[Tensor, "rows pos 1 d_head"]  # negated in the first half

    def turn(self, x: Float[Tensor, "batch pos head d_head"]) -> Tensor:
        """Rotate each pair (x_i, x_{i + d_head/2}) by its angle."""
        swapped = x.roll(x.shape[-1] // 2, dims=-1)
        return torch.addcmul(x * self.cos, swapped, self.sin)


class Rotary(nn.Module):
    """The angles of each position: position·frequency, with `frequencies` for each pair."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.shape = (cfg.n_ctx, cfg.d_head, cfg.rotary_base, cfg.rotary_scaling)

    def forward(
        self, positions: Int[Tensor, "rows pos"], dtype: torch.dtype = torch.float32
    ) -> Angles:
        cos, sin = _tables(*self.shape, dtype, positions.device)
        return Angles(cos[positions][:, :, None], sin[positions][:, :, None])


def frequencies(
    d_head: int, base: float, scaling: RotaryScaling | None = None
) -> Float[Tensor, " pair"]:
    """Return the rotation of each pair from one position to the next: base^(−2i/d_head), scaled.

    Computed in float32, as in transformers, whose models were trained with it. A thousand positions
    on, exact angles would differ from theirs enough to change logits by 2e-4.
    """
    pairs = torch.arange(d_head // 2, dtype=torch.float32, device="cpu")
    frequency = 1 / base ** (2 * pairs / d_head)
    if scaling is None:
        return frequency
    turns = scaling.original_ctx_len * frequency / (2 * torch.pi)  # in the original context
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequency * (kept + (1 - kept) / scaling.factor)


@lru_cache(maxsize=16)
def _tables(
    n_ctx: int,
    d_head: int,
    base: float,
    scaling: RotaryScaling | None,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of every position, cached and shared by all layers and models.

    For 131072 positions and d_head 128 they take 134 MB, which each layer would otherwise hold.
    """
    positions = torch.arange(n_ctx, dtype=torch.float32, device="cpu")[:, None]
    angle = positions * frequencies(d_head, base, scaling)  # [n_ctx pair]
    cos, sin = (table.to(dtype).to(device) for table in (angle.cos(), angle.sin()))
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
