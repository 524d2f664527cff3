"""Confidence intervals of means: bootstrap over examples."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

DRAWS = 1_000


def bootstrap(
    values: Float[Tensor, "*axes example"], seed: int = 0
) -> tuple[Float[Tensor, "*axes"], Float[Tensor, "*axes"], Float[Tensor, "*axes"]]:
    """Compute the mean over examples and the ends of its 95 % percentile interval.

    NaN examples are ignored. All rows along the other axes are resampled with the same draws, so
    differences between rows stay paired. The results are computed and returned on the CPU, because
    MPS has no float64.
    """
    values = values.cpu()
    present = values.isfinite()
    known = values.where(present, torch.zeros_like(values)).double()
    n = values.shape[-1]
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=DRAWS)
    weights = torch.from_numpy(draws).to(known).T  # [example draw]
    means = (known @ weights) / (present.double() @ weights)  # [*axes draw]
    low, high = means.nanquantile(torch.tensor([0.025, 0.975]).to(means), dim=-1)
    mean = known.sum(-1) / present.sum(-1)
    return mean.to(values.dtype), low.to(values.dtype), high.to(values.dtype)
