"""A batch of questions: what a model is given, and what the task knows of it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PAD = 0  # token id, and the first word of every symbolic vocabulary
NONE = -1  # where a row has fewer hops than the widest row

Rows = TypeVar("Rows", bound="Batch")


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
    difficulty: Int[Tensor, " batch"]
    """Reasoning steps that the answer takes, in the task's own unit: hops, depth."""
    bridge: Int[Tensor, "batch hop"]
    """Tokens that a reasoner passes through, in order; −1 where a row has none."""
    bridge_at: Int[Tensor, "batch hop"]
    """Position at which each bridge is to be read; −1 for none."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def inputs(self) -> dict[str, Any]:
        """Keyword arguments for a model: tokens, and a mask if any row is padded."""
        if bool((self.length == self.tokens.shape[1]).all()):
            return {"tokens": self.tokens}
        return {"tokens": self.tokens, "attention_mask": (~self.is_pad).long()}

    @property
    def reasoning_steps(self) -> Int[Tensor, " batch"]:
        """Another name of `difficulty`."""
        return self.difficulty

    @property
    def is_pad(self) -> Bool[Tensor, "batch pos"]:
        """Which tokens fill a row up to the width of the batch."""
        columns = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return columns >= self.length[:, None]

    def __getitem__(self: Rows, rows: Tensor | slice) -> Rows:
        """Some of the rows, as wide as before."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def to(self: Rows, device: str | torch.device) -> Rows:
        """The same rows on another device."""
        return replace(self, **{f.name: getattr(self, f.name).to(device) for f in fields(self)})

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

    def trimmed(self: Rows) -> Rows:
        """The same rows without columns in which every row is padding."""
        width = int(self.length.max())
        if width == self.tokens.shape[1]:
            return self
        return replace(self, **self._columns(width))

    def _columns(self, width: int) -> dict[str, Tensor]:
        """The first `width` columns of whatever has one for each position."""
        return {"tokens": self.tokens[:, :width]}

    def by_length(self: Rows) -> Iterator[Rows]:
        """The rows in groups of equal length, so that nothing is computed for padding."""
        for length in self.length.unique().tolist():
            yield self[(self.length == length).nonzero()[:, 0]].trimmed()

    def in_parts(self: Rows, least: int) -> Iterator[Rows]:
        """The rows in groups of like lengths, each of `least` rows or more and as wide as need be.

        Groups of one length compute nothing for padding; small groups cost more than padding does.
        """
        if len(self) < 2 * least:
            yield self.trimmed()
            return
        order = self.length.argsort(stable=True)
        ends = (self.length[order].diff() > 0).nonzero()[:, 0] + 1
        start = 0
        for end in [*ends.tolist(), len(self)]:
            if end == len(self) or (end - start >= least and len(self) - end >= least):
                yield self[order[start:end]].trimmed()
                start = end

    @staticmethod
    def cat(batches: "list[Rows]") -> "Rows":
        """One batch of all rows; every batch must come from the same task."""
        first = batches[0]
        return replace(
            first,
            **{f.name: torch.cat([getattr(b, f.name) for b in batches]) for f in fields(first)},
        )


@dataclass(frozen=True, eq=False)
class HopBatch(Batch):
    """Rows whose answer is found by walking edges, a hop for each relation."""

    facts: Int[Tensor, "batch fact 3"]
    """Subject, relation and object of each hop; −1 where a row has none."""

    @property
    def hops(self) -> Int[Tensor, " batch"]:
        """Edges between the question's entity and the answer."""
        return self.difficulty


@dataclass(frozen=True, eq=False)
class GraphBatch(Batch):
    """Rows that hold a directed graph, a token for each node, and ask about two of its nodes."""

    adjacency: Bool[Tensor, "batch node node"]
    """Whether an edge leads from the first node to the second."""
    source_at: Int[Tensor, " batch"]
    target_at: Int[Tensor, " batch"]
    distance: Int[Tensor, "batch node"]
    """Edges on the shortest way from the source to each node; −1 where there is none."""

    @property
    def hops(self) -> Int[Tensor, " batch"]:
        """Edges between source and target; of an unreachable target those of its bucket."""
        return self.difficulty

    @property
    def inputs(self) -> dict[str, Any]:
        """Tokens, mask, edges and the two nodes that are asked about."""
        asked = {"source_at": self.source_at, "target_at": self.target_at}
        return super().inputs | {"adjacency": self.adjacency} | asked

    def _columns(self, width: int) -> dict[str, Tensor]:
        edges = self.adjacency[:, :width, :width]
        return super()._columns(width) | {
            "adjacency": edges,
            "distance": self.distance[:, :width],
        }


@dataclass(frozen=True, eq=False)
class DeepBatch(Batch):
    """Rows that ask about two of their positions, or about the whole; difficulty is a depth."""

    source_at: Int[Tensor, " batch"]
    """Position of the first of two that are asked about; of a question on the whole, 0."""
    target_at: Int[Tensor, " batch"]

    @property
    def depth(self) -> Int[Tensor, " batch"]:
        """Levels of nesting, or facts to be composed."""
        return self.difficulty

    @property
    def inputs(self) -> dict[str, Any]:
        """Tokens, mask, and the two positions that are asked about."""
        return super().inputs | {"source_at": self.source_at, "target_at": self.target_at}
