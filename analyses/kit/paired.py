"""Accuracy differences on the same questions: exact test, interval, multiple-test correction."""

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
    """Difference in accuracy between two conditions on the same questions."""

    mean: float
    low: float
    """Low end of the 95 % bootstrap interval over questions."""
    high: float
    p_value: float
    """Exact and two-sided (McNemar)."""
    gained: int
    """Number of questions that only the first condition answers right."""
    lost: int
    """Number of questions that only the second condition answers right."""


def difference(right: Bool[Tensor, " question"], beside: Bool[Tensor, " question"]) -> Difference:
    """Compute the accuracy of one condition minus that of another, on the same questions."""
    gained, lost = changes(right, beside)
    mean, low, high = bootstrap(right.double() - beside.double())
    return Difference(float(mean), float(low), float(high), mcnemar(gained, lost), gained, lost)


def changes(right: Bool[Tensor, " question"], beside: Bool[Tensor, " question"]) -> tuple[int, int]:
    """Count the questions that only the first condition answers right, and only the second."""
    return int((right & ~beside).sum()), int((~right & beside).sum())


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of McNemar's test (1947).

    Under the null hypothesis, gains and losses are equally likely.
    """
    n, fewer = gained + lost, min(gained, lost)
    # Integers, which do not underflow with many questions
    tail = sum(comb(n, k) for k in range(fewer + 1))
    return min(2 * tail / 2**n, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, least = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min((len(p_values) - rank) * p_values[index], 1.0))
        adjusted[index] = least
    return adjusted


def probabilities(values: Any) -> Float[Tensor, "..."]:
    """Return nested p-values as a float64 tensor; in float32 the smallest would become 0."""
    return torch.tensor(values, dtype=torch.float64)
