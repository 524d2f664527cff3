"""Whether a small run spends its time on arithmetic: two shares of the time of a training step.

Utilisation: the sizes of a step's matrix products, forward and backward, are recorded. The same
products are then run on their own, alternating with the step. Their share of the step's time is
FLOPs / (step time × the rate that this machine reaches on products of these sizes). Attention's
own products are not counted: on three positions they are under 1 %.

Time that grows with the rows: it is measured by a step on four times the rows. The rest of the time
is spent on Python, dispatch and the optimiser, whatever the batch.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.row import Row
from benchmarks.timing import interleave, ratio
from workbench.settings.recipe import load_recipe
from workbench.training import Trainer

RECIPE = "two-hop-small-discoloop"
ROWS = 512
Sizes = tuple[int, int, int]  # rows, inner, columns


class Products(TorchDispatchMode):
    """Dispatch mode that counts the matrix products run inside it, by size."""

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


def measure() -> Iterator[Row]:
    """Measure both shares on the small recipe."""
    step, large = _step(ROWS), _step(4 * ROWS)
    with Products() as products:
        step()
    seconds = interleave({"step": step, "products": _alone(products.sizes), "4 x rows": large})
    medians = {name: median(taken) for name, taken in seconds.items()}
    flops = sum(2 * m * k * n * times for (m, k, n), times in products.sizes.items())
    rate = flops / medians["products"]
    sizes = f"{flops / 1e9:.2f} GFLOP at {rate / 1e9:.0f} GFLOP/s"
    growing = median(
        (big - small) / 3 / small
        for small, big in zip(seconds["step"], seconds["4 x rows"], strict=True)
    )
    utilisation = ratio(seconds["products"], seconds["step"])
    yield Row("utilisation", f"{RECIPE}: {sizes}", 100 * utilisation, "%", None, "above", medians)
    yield Row("time that grows with the rows", RECIPE, 100 * growing, "%", 80, "above", medians)


def _step(n_rows: int) -> Callable[[], None]:
    """Return the trainer's step on the small recipe, with `n_rows` questions per batch."""
    recipe = load_recipe(RECIPE, [f"training.batch_size={n_rows}"])
    trainer = Trainer(recipe, Path("never-written"), quiet=True)
    numbers = count()

    def step() -> None:
        trainer.update(next(numbers))

    return step


def _alone(sizes: Counter[Sizes]) -> Callable[[], None]:
    pairs: list[tuple[Tensor, Tensor, int]] = [
        (torch.randn(m, k), torch.randn(k, n), times) for (m, k, n), times in sizes.items()
    ]

    def products() -> None:
        for left, right, times in pairs:
            for _ in range(times):
                left @ right

    return products
