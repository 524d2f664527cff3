"""Differences of accuracies on the same questions: exact test, interval, several tests at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.kit.spread import bootstrap


@dataclass(frozen=True)
class Difference:
    """How much oftener one way answers right than another."""

    mean: float
    low: float
    """Of the 95 % bootstrap interval over questions."""
    high: float
    p_value: float
    """Exact and two-sided (McNemar)."""
    gained: int
    """Questions that the first alone answers right."""
    lost: int
    """Questions that the second alone answers right."""


def difference(right: Bool[Tensor, " question"], beside: Bool[Tensor, " question"]) -> Difference:
    """The accuracy of one way less that of another, on the same questions."""
    gained, lost = changes(right, beside)
    mean, low, high = bootstrap(right.double() - beside.double())
    return Difference(float(mean), float(low), float(high), mcnemar(gained, lost), gained, lost)


def changes(right: Bool[Tensor, " question"], beside: Bool[Tensor, " question"]) -> tuple[int, int]:
    """Questions that one way alone answers right, and that the other alone does."""
    return int((right & ~beside).sum()), int((~right & beside).sum())


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided p-value of so many changes one way and the other, were both as likely (1947)."""
    n, fewer = gained + lost, min(gained, lost)
    # Whole numbers, so that many questions underflow nothing
    tail = sum(comb(n, k) for k in range(fewer + 1))
    return min(2 * tail / 2**n, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values that hold for all tests together (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, least = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min((len(p_values) - rank) * p_values[index], 1.0))
        adjusted[index] = least
    return adjusted


def probabilities(values: Any) -> Float[Tensor, "..."]:
    """P-values, nested as they are, in double precision; in single, the clearest would be 0."""
    return torch.tensor(values, dtype=torch.float64)
