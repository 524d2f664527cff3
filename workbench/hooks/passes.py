"""The assignment of a batch's positions to the passes of a model that thinks.

A thought is computed from the positions before it. A sequence with n thoughts therefore runs in
n + 1 passes: up to the first thought, from each thought up to the next, and from the last thought
to the end. Every real position is in exactly one pass.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from workbench.hooks import PER_QUERY


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes of one batch, whose rows may have thoughts at different positions.

    Every row ends in the batch's last pass. A row with fewer thoughts waits: it has no positions in
    the passes between. A row without thoughts runs up to the width of the first pass, and the rest
    of it runs in the last pass.
    """

    columns: tuple[Int[Tensor, "batch _width"], ...]
    """The sequence columns that each pass runs; −1 is filler."""
    positions: Int[Tensor, "batch pos"]
    """Index of each real position in its row, from 0; 0 for padding."""
    n_thoughts: Int[Tensor, " batch"]
    """Number of thoughts of each row."""
    thought_at: Int[Tensor, "batch thought"]
    """Column of each thought, in order; −1 after the last thought of a row."""

    @property
    def n(self) -> int:
        """The largest number of thoughts in any row: the number of passes minus one."""
        return len(self.columns) - 1

    @property
    def valid(self) -> Bool[Tensor, "thought batch"]:
        """Whether each row has a thought with each number."""
        numbers = torch.arange(self.n, device=self.n_thoughts.device)
        return numbers[:, None] < self.n_thoughts

    @property
    def own_pass(self) -> Int[Tensor, "batch pos"]:
        """The pass of each position in its row: the number of thoughts up to and including it."""
        columns = torch.arange(self.positions.shape[1], device=self.positions.device)
        begun = (self.thought_at[..., None] >= 0) & (self.thought_at[..., None] <= columns)
        return begun.sum(1)

    def ends(self, number: int) -> Int[Tensor, " batch"]:
        """Return the index of each row's last position in a pass; −1 for rows that it skips."""
        return (self.columns[number] >= 0).sum(1) - 1

    def gather(self, tensor: Tensor, number: int) -> Tensor:
        """Select a pass's columns from `[batch pos …]`; filler gets the first column's values."""
        columns = self.columns[number].clamp(min=0)
        return tensor[torch.arange(len(tensor), device=tensor.device)[:, None], columns]

    def assemble(self, parts: list[Tensor], name: str = "", fill: float = 0.0) -> Tensor:
        """Join the tensors of all passes into one sequence `[batch pos …]`; padding gets `fill`.

        Args:
            parts: The tensor of each pass, `[batch width …]`; for attention scores and patterns
                `[batch head width key]`, with keys in the order in which the passes ran.
            name: The hook that recorded them.
            fill: The value where no pass recorded anything.
        """
        if not name.endswith(PER_QUERY):
            return self._in_order(torch.cat(parts, dim=1), fill)
        n_keys = parts[-1].shape[-1]
        wide = [torch.nn.functional.pad(p, (0, n_keys - p.shape[-1]), value=fill) for p in parts]
        by_query = self._in_order(torch.cat(wide, dim=2).transpose(1, 2), fill)
        by_key = self._in_order(by_query.transpose(1, 3), fill)  # [batch key head query]
        return by_key.permute(0, 2, 3, 1)

    def keys(self, number: int) -> Int[Tensor, "batch key"]:
        """Return the columns of the keys of a pass, in the order in which the passes ran."""
        return torch.cat(self.columns[: number + 1], dim=1)

    def _in_order(self, ran: Tensor, fill: float) -> Tensor:
        """Reorder `[batch ran …]` from the order of the passes to the order of the sequence."""
        columns = torch.cat(self.columns, dim=1)  # [batch ran]
        n_batch, n_pos = self.positions.shape
        spare = torch.where(columns >= 0, columns, n_pos)
        source = torch.full((n_batch, n_pos + 1), -1, device=ran.device)
        order = torch.arange(columns.shape[1], device=ran.device).expand_as(columns)
        source = source.scatter(1, spare, order)[:, :n_pos]
        rows = torch.arange(n_batch, device=ran.device)[:, None]
        absent = (source < 0).view(n_batch, n_pos, *[1] * (ran.ndim - 2))
        return ran[rows, source.clamp(min=0)].masked_fill(absent, fill)


def plan_passes(
    tokens: Int[Tensor, "batch pos"],
    attention_mask: Int[Tensor, "batch pos"] | None,
    latent_token: int,
) -> Passes:
    """Plan the passes that fill every `latent_token` with a thought.

    Raises:
        ValueError: A row begins with a thought, which has no position before it.
    """
    _n_batch, n_pos = tokens.shape
    real = torch.ones_like(tokens, dtype=torch.bool)
    if attention_mask is not None:
        real = attention_mask.bool()
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    # By row, the column of its first, second, … real position, with padding columns at the end
    in_row = real.long().argsort(dim=1, descending=True, stable=True)
    is_thought = (tokens == latent_token) & real
    n_thoughts = is_thought.sum(1)
    first = (is_thought & (positions == 0)).any(1).nonzero()[:, 0].tolist()
    if first:
        raise ValueError(
            f"row {first[0]} begins with a thought; a thought is made from the position before it"
        )
    thought_at = _in_order(is_thought, n_thoughts)
    starts, ends = _bounds(positions, thought_at, n_thoughts, real.sum(1))
    columns = []
    for start, end in zip(starts, ends, strict=True):
        width = max(int((end - start).max()), 1)
        numbers = start[:, None] + torch.arange(width, device=tokens.device)
        found = in_row.gather(1, numbers.clamp(max=n_pos - 1))
        columns.append(torch.where(numbers < end[:, None], found, -1))
    return Passes(tuple(columns), positions, n_thoughts, thought_at)


def _in_order(
    is_thought: Bool[Tensor, "batch pos"], n_thoughts: Int[Tensor, " batch"]
) -> Int[Tensor, "batch thought"]:
    """Return the columns of each row's thoughts; −1 after its last one."""
    most = int(n_thoughts.max())
    columns = is_thought.long().argsort(dim=1, descending=True, stable=True)[:, :most]
    numbers = torch.arange(most, device=columns.device)
    return torch.where(numbers < n_thoughts[:, None], columns, -1)


def _bounds(
    positions: Int[Tensor, "batch pos"],
    thought_at: Int[Tensor, "batch thought"],
    n_thoughts: Int[Tensor, " batch"],
    length: Int[Tensor, " batch"],
) -> tuple[Int[Tensor, "run batch"], Int[Tensor, "run batch"]]:
    """Return the real positions at which each pass begins and ends, for each row."""
    at = positions.gather(1, thought_at.clamp(min=0))
    if thought_at.shape[1]:
        # A row waits at its last thought while others continue; a row without thoughts runs up
        # to the end of the others' first pass
        last = at.gather(1, (n_thoughts - 1).clamp(min=0)[:, None])
        first = at[:, 0][n_thoughts > 0].max().clamp(max=length)[:, None]
        waits = torch.where((n_thoughts == 0)[:, None], first, last)
        at = torch.where(thought_at >= 0, at, waits)
    zero, end = at.new_zeros(len(at), 1), length[:, None]
    bounds = torch.cat((zero, at, end), dim=1).T
    return bounds[:-1], bounds[1:]
