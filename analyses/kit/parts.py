"""Large batches in parts, so that an analysis's activations of all loops fit into memory."""

from collections.abc import Iterator
from typing import TypeVar

from workbench.capabilities import CanLoop, CanRecord
from workbench.hooks import is_heard
from workbench.tasks.batch import Batch

Rows = TypeVar("Rows", bound=Batch)


def in_parts(model: CanRecord, batch: Rows, n_rows: int = 512) -> Iterator[Rows]:
    """Yield the rows in order, `n_rows` at a time, or all at once if hooks are on the model.

    An edit may target certain rows, so it must get the whole batch.
    """
    size = len(batch) if is_heard(*model.hook_points()) else n_rows
    for start in range(0, len(batch), size):
        yield batch[start : start + size]


def most_loops(model: CanLoop, times: float) -> int:
    """Return the most loops to run: all in the loop embedding, or `times` the model's default.

    A model with one loop always runs one.
    """
    if model.n_loops == 1:
        return 1
    return model.max_loops or round(times * model.n_loops)
