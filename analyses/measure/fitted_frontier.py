"""The compute frontier: how many loops each difficulty takes, and how many one more step costs.

A difficulty is solved after the loop at which accuracy has come three quarters of the way from
chance to its ceiling, interpolated between loops. The frontier is the straight line fitted to these
points over difficulty. Its slope is the number of loops that one more reasoning step costs.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

WAY = 0.75  # share of the way from chance to the ceiling
SURE = 3.0  # standard errors above chance; 2 are too few, as the ceiling is the best of many loops
DRAWS = 1_000


class Frontier(NamedTuple):
    """The loops after which each difficulty is solved, and the line fitted to them."""

    crossing: Float[Tensor, "*draw difficulty"]  # loops; NaN where it is never solved
    slope: Float[Tensor, "*draw"]  # loops for one more step; NaN with fewer than two points
    intercept: Float[Tensor, "*draw"]


def solvable(
    accuracy: Float[Tensor, "difficulty loop"],
    chance: Float[Tensor, " difficulty"],
    n: Int[Tensor, " difficulty"],
    sure: float = SURE,
) -> Bool[Tensor, " difficulty"]:
    """Return whether the best loop is above chance by `sure` standard errors of chance."""
    error = (chance * (1 - chance) / n).sqrt()
    return accuracy.amax(-1) > chance + sure * error


def fit(
    accuracy: Float[Tensor, "*draw difficulty loop"],
    chance: Float[Tensor, " difficulty"],
    solved: Bool[Tensor, " difficulty"],
    levels: Int[Tensor, " difficulty"],
) -> Frontier:
    """Find the crossings of the solved difficulties and the least-squares line through them.

    A difficulty that is above the threshold after the first loop has its crossing at 1.
    """
    threshold = (chance + WAY * (accuracy.amax(-1) - chance))[..., None]
    first = (accuracy >= threshold).int().argmax(-1, keepdim=True)
    before = accuracy.gather(-1, (first - 1).clamp(min=0))
    rise = accuracy.gather(-1, first) - before
    part = ((threshold - before) / rise).where(rise > 0, torch.zeros_like(rise))
    crossing = torch.where(first > 0, first + part, torch.ones_like(part))[..., 0]
    crossing = crossing.where(solved, torch.nan)
    x, y = levels[solved].to(accuracy), crossing[..., solved]
    spread = (x - x.mean()).pow(2).sum()
    slope = ((x - x.mean()) * y).sum(-1) / spread  # 0/0 is NaN: no line through one point
    return Frontier(crossing, slope, y.mean(-1) - slope * x.mean())


def resampled(
    right: Bool[Tensor, "loop batch"],
    difficulty: Int[Tensor, " batch"],
    levels: Int[Tensor, " difficulty"],
    seed: int = 0,
) -> Float[Tensor, "draw difficulty loop"]:
    """Compute the accuracies of bootstrap samples, each drawn within its difficulty."""
    rng = np.random.default_rng(seed)
    found = []
    for level in levels:
        rows = right[:, difficulty == level].double()
        n = rows.shape[1]
        weights = torch.from_numpy(rng.multinomial(n, np.full(n, 1 / n), size=DRAWS))
        found.append(weights.double() @ rows.T / n)
    return torch.stack(found, dim=1).float()


def best_once_enough(
    accuracy: Float[Tensor, "*draw difficulty loop"],
    levels: Int[Tensor, " difficulty"],
    wanted: Bool[Tensor, " difficulty"],
) -> Float[Tensor, "*draw"]:
    """Average, over the wanted difficulties, the best accuracy among loops ≥ difficulty (VCoT).

    Difficulties without such a loop are ignored; the mean is NaN if no difficulty has one.
    """
    loops = torch.arange(1, accuracy.shape[-1] + 1)
    enough = loops >= levels[:, None]  # [difficulty loop]
    best = accuracy.where(enough, -torch.inf).amax(-1)
    counted = wanted & enough.any(-1)
    return best[..., counted].mean(-1)
