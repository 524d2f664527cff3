"""A batch of questions: what a model is given, and what the task knows of it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PAD = 0  # token id, and the first word of every symbolic vocabulary
NONE = -1  # where a row has fewer hops than the widest row


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of questions, padded on the right to the longest.

    `.inputs` is all that a model is given: `model(**batch.inputs)`.
    """

    tokens: Int[Tensor, "batch pos"]
    length: Int[Tensor, " batch"]
    read_at: Int[Tensor, " batch"]
    """Position at which the answer is read."""
    answer: Int[Tensor, " batch"]
    hops: Int[Tensor, " batch"]
    bridge: Int[Tensor, "batch hop"]
    """Entities between the hops, in order; −1 where a row has none."""
    bridge_at: Int[Tensor, "batch hop"]
    """Position at which each bridge is to be read: that of its own relation; −1 for none."""
    facts: Int[Tensor, "batch fact 3"]
    """Subject, relation and object of each hop; −1 where a row has none."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def inputs(self) -> dict[str, Any]:
        """Keyword arguments for a model: tokens, and a mask if any row is padded."""
        if bool((self.length == self.tokens.shape[1]).all()):
            return {"tokens": self.tokens}
        return {"tokens": self.tokens, "attention_mask": (~self.is_pad).long()}

    @property
    def is_pad(self) -> Bool[Tensor, "batch pos"]:
        """Which tokens fill a row up to the width of the batch."""
        columns = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return columns >= self.length[:, None]

    def __getitem__(self, rows: Tensor | slice) -> "Batch":
        """Some of the rows, as wide as before."""
        return Batch(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def to(self, device: str | torch.device) -> "Batch":
        """The same rows on another device."""
        return Batch(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})

    def other_bridges(self) -> Int[Tensor, "batch hop"]:
        """Of each row the bridges of another, taken in turn from the rows that have one there.

        Where no other row has any, there is none.
        """
        other = torch.full_like(self.bridge, NONE)
        for hop in range(self.bridge.shape[1]):
            rows = (self.bridge[:, hop] >= 0).nonzero()[:, 0]
            if len(rows) > 1:
                other[rows, hop] = self.bridge[rows.roll(1), hop]
        return other

    def trimmed(self) -> "Batch":
        """The same rows without columns in which every row is padding."""
        width = int(self.length.max())
        if width == self.tokens.shape[1]:
            return self
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return Batch(**parts | {"tokens": self.tokens[:, :width]})

    def by_length(self) -> Iterator["Batch"]:
        """The rows in groups of equal length, so that nothing is computed for padding."""
        for length in self.length.unique().tolist():
            yield self[(self.length == length).nonzero()[:, 0]].trimmed()

    @staticmethod
    def cat(batches: "list[Batch]") -> "Batch":
        """One batch of all rows; every batch must come from the same task."""
        return Batch(
            **{f.name: torch.cat([getattr(b, f.name) for b in batches]) for f in fields(Batch)}
        )
