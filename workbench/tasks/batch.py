"""Batches of questions: the model's inputs, and the labels that the task adds."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PAD = 0  # token id, and the first word of every symbolic vocabulary
NONE = -1  # fills the hops that a row lacks compared with the widest row

Rows = TypeVar("Rows", bound="Batch")


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of questions, padded on the right to the longest.

    `.inputs` holds all inputs of a model: `model(**batch.inputs)`.
    """

    tokens: Int[Tensor, "batch pos"]
    length: Int[Tensor, " batch"]
    read_at: Int[Tensor, " batch"]
    """Position at which the answer is read."""
    answer: Int[Tensor, " batch"]
    difficulty: Int[Tensor, " batch"]
    """Number of reasoning steps to the answer, in the task's own unit: hops, depth."""
    bridge: Int[Tensor, "batch hop"]
    """Token ids of the intermediate results of the reasoning, in order; −1 for none."""
    bridge_at: Int[Tensor, "batch hop"]
    """Position at which each bridge should be decodable; −1 for none."""

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
        """Alias of `difficulty`."""
        return self.difficulty

    @property
    def is_pad(self) -> Bool[Tensor, "batch pos"]:
        """Mask of the padding tokens."""
        columns = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return columns >= self.length[:, None]

    def __getitem__(self: Rows, rows: Tensor | slice) -> Rows:
        """Return some of the rows, without trimming the width."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def to(self: Rows, device: str | torch.device) -> Rows:
        """Return the same rows on another device."""
        return replace(self, **{f.name: getattr(self, f.name).to(device) for f in fields(self)})

    def other_bridges(self) -> Int[Tensor, "batch hop"]:
        """Return for each row the bridges of another row, for use as a control.

        For each hop, the rows that have a bridge pass it on to the next such row, in turn. The
        value is −1 where no other row has one.
        """
        other = torch.full_like(self.bridge, NONE)
        for hop in range(self.bridge.shape[1]):
            rows = (self.bridge[:, hop] >= 0).nonzero()[:, 0]
            if len(rows) > 1:
                other[rows, hop] = self.bridge[rows.roll(1), hop]
        return other

    def trimmed(self: Rows) -> Rows:
        """Return the same rows without the columns in which every row is padding."""
        width = int(self.length.max())
        if width == self.tokens.shape[1]:
            return self
        return replace(self, **self._columns(width))

    def _columns(self, width: int) -> dict[str, Tensor]:
        """Return the first `width` columns of each field that has one column per position."""
        return {"tokens": self.tokens[:, :width]}

    def by_length(self: Rows) -> Iterator[Rows]:
        """Yield the rows in groups of equal length, so that nothing is computed for padding."""
        for length in self.length.unique().tolist():
            yield self[(self.length == length).nonzero()[:, 0]].trimmed()

    def in_parts(self: Rows, least: int) -> Iterator[Rows]:
        """Yield the rows in trimmed groups of similar length, each of at least `least` rows.

        Groups of one length would need no padding, but small groups cost more than padding does.
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
        """Concatenate batches into one; all batches must come from the same task."""
        first = batches[0]
        return replace(
            first,
            **{f.name: torch.cat([getattr(b, f.name) for b in batches]) for f in fields(first)},
        )


@dataclass(frozen=True, eq=False)
class HopBatch(Batch):
    """Rows whose answer is found by following edges, one hop per relation."""

    facts: Int[Tensor, "batch fact 3"]
    """Subject, relation and object of each hop; −1 where a row has none."""

    @property
    def hops(self) -> Int[Tensor, " batch"]:
        """Number of edges between the question's entity and the answer."""
        return self.difficulty


@dataclass(frozen=True, eq=False)
class GraphBatch(Batch):
    """Rows that hold a directed graph, one token per node, and ask about two of its nodes."""

    adjacency: Bool[Tensor, "batch node node"]
    """Whether an edge leads from the first node to the second."""
    source_at: Int[Tensor, " batch"]
    target_at: Int[Tensor, " batch"]
    distance: Int[Tensor, "batch node"]
    """Number of edges on a shortest path from the source to each node; −1 without a path."""

    @property
    def hops(self) -> Int[Tensor, " batch"]:
        """Number of edges from source to target; the bucket's number if unreachable."""
        return self.difficulty

    @property
    def inputs(self) -> dict[str, Any]:
        """Tokens, mask, edges and the two nodes that the question is about."""
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
    """Rows that ask about two of their positions or about the whole row; difficulty is a depth."""

    source_at: Int[Tensor, " batch"]
    """First of the two positions in question; 0 if the question is about the whole row."""
    target_at: Int[Tensor, " batch"]

    @property
    def depth(self) -> Int[Tensor, " batch"]:
        """Number of nesting levels, or of facts to compose."""
        return self.difficulty

    @property
    def inputs(self) -> dict[str, Any]:
        """Tokens, mask, and the two positions that the question is about."""
        return super().inputs | {"source_at": self.source_at, "target_at": self.target_at}
