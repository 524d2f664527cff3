"""Positions as distance: a learned bias for each head and distance (Raffel et al. 2020, T5)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.settings.config import ModelConfig


class RelativeBias(nn.Module):
    """What is added to a score for looking `distance` positions back.

    It starts at 0 for the position itself and its neighbour and falls by `relative_slope` with
    every step beyond: as ALiBi's (Press et al. 2022), but learned. A head that reads the position
    before it does so at once, wherever the pair stands; one whose slope is 0 looks anywhere.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        beyond = (torch.arange(cfg.n_ctx) - 1).clamp(min=0)
        slopes = torch.tensor(cfg.relative_slope).expand(cfg.n_heads)
        self.b = nn.Parameter(-slopes[:, None] * beyond.float())

    def forward(
        self, positions: Int[Tensor, "rows query"], keys: Int[Tensor, "rows key"] | None = None
    ) -> Float[Tensor, "rows head query key"]:
        """The bias of each query for each key; for the queries' own positions by default."""
        keys = positions if keys is None else keys
        # Filling among the keys, which nothing looks at, may seem further off than any position
        distance = (positions[:, :, None] - keys[:, None, :]).clamp(0, self.b.shape[1] - 1)
        return self.b[:, distance].transpose(0, 1)
