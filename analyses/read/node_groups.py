"""Positions that mean the same in every row: of text the position, of graphs the node's part.

A node's place in a row means nothing; what it is to the question does: the source, so many edges
from it, out of its reach, or the target.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.tasks.batch import NONE, Batch, GraphBatch


@dataclass(frozen=True, eq=False)
class Groups:
    """Names of groups, the same for all batches that they were made of."""

    labels: tuple[str, ...]
    axis: str
    """What a group goes by: position, or edges from the source; `none` is out of its reach."""
    farthest: int | None
    """Of graphs, the greatest distance from a source; None for text."""

    @classmethod
    def of(cls, batches: Iterable[Batch]) -> "Groups":
        """The groups that the positions of these batches fall into."""
        batches = list(batches)
        graphs = [rows for rows in batches if isinstance(rows, GraphBatch)]
        if not graphs:
            width = max(rows.tokens.shape[1] for rows in batches)
            return cls(tuple(map(str, range(width))), "position", None)
        farthest = max(int(rows.distance.max()) for rows in graphs)
        steps = map(str, range(1, farthest + 1))
        return cls(("source", *steps, "none", "target"), "edges from the source", farthest)

    def index(self, batch: Batch) -> Int[Tensor, "batch pos"]:
        """The group of each position; −1 at padding."""
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
        """Mean over each row's positions of a group; NaN where the row has none."""
        index = self.index(batch)
        found = []
        for group in range(len(self.labels)):
            inside = (index == group).to(values)
            found.append((values * inside).sum(-1) / inside.sum(-1))
        return torch.stack(found, dim=1)
