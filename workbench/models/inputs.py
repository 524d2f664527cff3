"""What a model may be given: inputs that are there, and numbers that are in range."""

from collections.abc import Collection

from torch import Tensor


def need(names: Collection[str], inputs: Collection[str]) -> None:
    """Refuse inputs that lack one that is needed.

    Raises:
        ValueError: One is missing.
    """
    for name in sorted(set(names) - set(inputs)):
        raise ValueError(f"this model needs the input {name!r}; give it `**batch.inputs`")


def check_range(name: str, numbers: Tensor, n: int, kind: str) -> None:
    """Refuse numbers that are not among the `n` there are, counted from 0.

    Raises:
        ValueError: One is not.
    """
    outside = (numbers < 0) | (numbers >= n)
    if bool(outside.any()):
        first = int(numbers[outside][0])
        raise ValueError(f"{name} holds {first}; the {n} {kind} are numbered from 0 to {n - 1}")
