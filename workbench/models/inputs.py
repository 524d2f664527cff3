"""Checks of a model's inputs: none is missing, and all indices are in range."""

from collections.abc import Collection

from torch import Tensor


def need(names: Collection[str], inputs: Collection[str]) -> None:
    """Check that all required inputs are present.

    Raises:
        ValueError: An input is missing.
    """
    for name in sorted(set(names) - set(inputs)):
        raise ValueError(f"this model needs the input {name!r}; give it `**batch.inputs`")


def check_range(name: str, numbers: Tensor, n: int, kind: str) -> None:
    """Check that all numbers are at least 0 and less than `n`.

    Raises:
        ValueError: A number is out of range.
    """
    outside = (numbers < 0) | (numbers >= n)
    if bool(outside.any()):
        first = int(numbers[outside][0])
        raise ValueError(f"{name} holds {first}; the {n} {kind} are numbered from 0 to {n - 1}")
