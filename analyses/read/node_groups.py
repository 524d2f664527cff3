"""Groups of positions that are comparable across rows: text positions, or roles of graph nodes.

A node's position in a row has no meaning. Its role in the question does: the source, a number of
edges from the source, out of its reach, or the target.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.tasks.batch import NONE, Batch, GraphBatch


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of positions, the same for all batches that they were built from."""

    labels: tuple[str, ...]
    axis: str
    """What defines a group: position, or edges from the source (`none` is out of its reach)."""
    farthest: int | None
    """For graphs, the greatest distance from a source; None for text."""

    @classmethod
    def of(cls, batches: Iterable[Batch]) -> "Groups":
        """Build the groups that cover the positions of these batches."""
        batches = list(batches)
        graphs = [rows for rows in batches if isinstance(rows, GraphBatch)]
        if not graphs:
            width = max(rows.tokens.shape[1] for rows in batches)
            return cls(tuple(map(str, range(width))), "position", None)
        farthest = max(int(rows.distance.max()) for rows in graphs)
        steps = map(str, range(1, farthest + 1))
        return cls(("source", *steps, "none", "target"), "edges from the source", farthest)

    def index(self, batch: Batch) -> Int[Tensor, "batch pos"]:
        """Return the index of each position's group; −1 at padding."""
        if self.farthest is None or not isinstance(batch, GraphBatch):
            columns = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
            return columns.expand_as(batch.tokens).masked_fill(batch.is_pad, NONE)
        away = batch.distance.masked_fill(batch.distance < 0, self.farthest + 1)
        rows = torch.arange(len(batch), device=away.device)
        away[rows, batch.target_at] = self.farthest + 2
        return away.masked_fill(batch.is_pad, NONE)

    def mean(
        self, values: Float[Tensor, "loop batch pos"], batch: Batch
    ) -> Float[Tensor, "loop group batch"]:
        """Average over each row's positions in a group; NaN where the row has none."""
        index = self.index(batch)
        found = []
        for group in range(len(self.labels)):
            inside = (index == group).to(values)
            found.append((values * inside).sum(-1) / inside.sum(-1))
        return torch.stack(found, dim=1)
