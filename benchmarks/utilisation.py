"""Whether a small run is bound by its arithmetic: its products alone against its whole step.

The matrix products of a training step, forward and backward, are noted with their sizes, and the
same products of the same sizes are then made on their own, in turns with the trainer's step. The
share of the step that they would take is its utilisation: FLOPs / (step time × the rate that this
machine reaches on products of these sizes). Attention's own products are not counted; on three
positions they are under 1 % of the FLOPs.
"""

from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.row import Row
from benchmarks.timing import interleave, ratio
from workbench.config import parse
from workbench.recipe import Recipe
from workbench.training import Trainer

SMALL = {
    "name": "small",
    "task": {
        "name": "two_hop",
        "n_entities": 50,
        "n_relations": 20,
        "n_train": 4_500,
        "n_test_id": 400,
        "n_test_ood": 400,
    },
    "model": {
        "family": "discoloop",
        "d_model": 64,
        "n_heads": 2,
        "n_layers": 2,
        "d_mlp": 256,
        "n_loops": 2,
    },
    "training": {"steps": 100_000, "mixture": {"train_atom": 0.5, "train_id": 0.5}},
}

Sizes = tuple[int, int, int]  # rows, inner, columns


class Products(TorchDispatchMode):
    """Counts the matrix products made while it is open, by size."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Counter[Sizes] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            left, right = args[-2:]
            self.sizes[(*left.shape, right.shape[1])] += 1
        return func(*args, **(kwargs or {}))


def measure() -> list[Row]:
    """One row: the utilisation of the small recipe."""
    with TemporaryDirectory() as folder:
        trainer = Trainer(parse(Recipe, SMALL, "recipe small"), Path(folder), quiet=True)
        numbers = count()

        def step() -> None:
            trainer.update(next(numbers))

        with Products() as products:
            step()
        seconds = interleave({"step": step, "products": _alone(products.sizes)})
    utilisation = 100 * ratio(seconds["products"], seconds["step"])
    flops = sum(2 * m * k * n * times for (m, k, n), times in products.sizes.items())
    rate = flops / min(seconds["products"]) / 1e9
    case = (
        f"two-hop, d 64, 2 layers × 2 loops: {flops / 1e9:.2f} GFLOP a step at {rate:.0f} GFLOP/s"
    )
    medians = {name: sorted(taken)[len(taken) // 2] for name, taken in seconds.items()}
    return [Row("utilisation", case, utilisation, "%", 50, "above", medians)]


def _alone(sizes: Counter[Sizes]) -> Callable[[], None]:
    pairs: list[tuple[Tensor, Tensor, int]] = [
        (torch.randn(m, k), torch.randn(k, n), times) for (m, k, n), times in sizes.items()
    ]

    def products() -> None:
        for left, right, times in pairs:
            for _ in range(times):
                left @ right

    return products
