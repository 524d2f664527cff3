"""Relative positions: a learned bias for each head and distance (Raffel et al. 2020, T5)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.settings.config import ModelConfig


class RelativeBias(nn.Module):
    """A bias on attention scores for attending `distance` positions back.

    It starts at 0 for the position itself and the previous one, and falls by `relative_slope` for
    each position further back, as in ALiBi (Press et al. 2022), but learned. A head can thus attend
    to the previous position from the start, wherever the pair is; a head with slope 0 has no
    preference.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        beyond = (torch.arange(cfg.n_ctx) - 1).clamp(min=0)
        slopes = torch.tensor(cfg.relative_slope).expand(cfg.n_heads)
        self.b = nn.Parameter(-slopes[:, None] * beyond.float())

    def forward(
        self, positions: Int[Tensor, "rows query"], keys: Int[Tensor, "rows key"] | None = None
    ) -> Float[Tensor, "rows head query key"]:
        """Return the bias for each query and key; keys default to the queries' positions."""
        keys = positions if keys is None else keys
        # Filler among the keys, which is always masked, can be out of the range of distances
        distance = (positions[:, :, None] - keys[:, None, :]).clamp(0, self.b.shape[1] - 1)
        return self.b[:, distance].transpose(0, 1)
