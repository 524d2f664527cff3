"""A large batch in parts, so that what an analysis keeps of all loops fits memory."""

from collections.abc import Iterator
from typing import TypeVar

from workbench.capabilities import CanLoop, CanRecord
from workbench.hooks import is_heard
from workbench.tasks.batch import Batch

Rows = TypeVar("Rows", bound=Batch)


def in_parts(model: CanRecord, batch: Rows, n_rows: int = 512) -> Iterator[Rows]:
    """The rows in order, `n_rows` at a time; all at once where hooks are open on the model.

    An edit may be of certain rows, so that it must see them all.
    """
    size = len(batch) if is_heard(*model.hook_points()) else n_rows
    for start in range(0, len(batch), size):
        yield batch[start : start + size]


def most_loops(model: CanLoop, times: float) -> int:
    """As many loops as a model can run: its table's, or `times` those that it runs by itself."""
    if model.n_loops == 1:
        return 1
    return model.max_loops or round(times * model.n_loops)
