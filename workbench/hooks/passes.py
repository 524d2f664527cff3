"""Which positions of a batch are run in which pass of a model that thinks.

A thought fills the position that follows those it is made from, so a sequence with n thoughts is
run in n + 1 passes: up to the first thought, from each thought up to the next, from the last
thought to the end. Every real position is in one pass, and in one only.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from workbench.hooks import PER_QUERY


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes of one batch; rows may have their thoughts in places of their own.

    A row's last pass is the batch's last: a row with fewer thoughts waits, with nothing in the
    passes between. A row without any is run as far as the first pass is wide, and in the last.
    """

    columns: tuple[Int[Tensor, "batch _width"], ...]
    """Of each pass the columns of the sequence it runs; −1 is filling."""
    positions: Int[Tensor, "batch pos"]
    """Number of each real position in its row, from 0; 0 for padding."""
    n_thoughts: Int[Tensor, " batch"]
    """Thoughts of each row."""
    thought_at: Int[Tensor, "batch thought"]
    """Column of each thought, in order; −1 where a row has no more."""

    @property
    def n(self) -> int:
        """Thoughts of the row that has most: one less than there are passes."""
        return len(self.columns) - 1

    @property
    def valid(self) -> Bool[Tensor, "thought batch"]:
        """Which rows have a thought of which number."""
        numbers = torch.arange(self.n, device=self.n_thoughts.device)
        return numbers[:, None] < self.n_thoughts

    @property
    def own_pass(self) -> Int[Tensor, "batch pos"]:
        """Which pass of its own row a position is in: as many thoughts as stand up to it."""
        columns = torch.arange(self.positions.shape[1], device=self.positions.device)
        begun = (self.thought_at[..., None] >= 0) & (self.thought_at[..., None] <= columns)
        return begun.sum(1)

    def ends(self, number: int) -> Int[Tensor, " batch"]:
        """Where in a pass each row's last position stands; −1 for a row that it does not run."""
        return (self.columns[number] >= 0).sum(1) - 1

    def gather(self, tensor: Tensor, number: int) -> Tensor:
        """What a pass is given of `[batch pos …]`; the first column stands for filling."""
        columns = self.columns[number].clamp(min=0)
        return tensor[torch.arange(len(tensor), device=tensor.device)[:, None], columns]

    def assemble(self, parts: list[Tensor], name: str = "", fill: float = 0.0) -> Tensor:
        """What the passes gave, as one sequence `[batch pos …]`; padding holds `fill`.

        Args:
            parts: What each pass gave, `[batch width …]`; of attention's scores and patterns
                `[batch head width key]`, keys in the order in which the passes ran.
            name: The place they were seen at.
            fill: What stands where nothing was seen.
        """
        if not name.endswith(PER_QUERY):
            return self._in_order(torch.cat(parts, dim=1), fill)
        n_keys = parts[-1].shape[-1]
        wide = [torch.nn.functional.pad(p, (0, n_keys - p.shape[-1]), value=fill) for p in parts]
        by_query = self._in_order(torch.cat(wide, dim=2).transpose(1, 2), fill)
        by_key = self._in_order(by_query.transpose(1, 3), fill)  # [batch key head query]
        return by_key.permute(0, 2, 3, 1)

    def keys(self, number: int) -> Int[Tensor, "batch key"]:
        """Columns of the keys that a pass sees, in the order in which the passes ran."""
        return torch.cat(self.columns[: number + 1], dim=1)

    def _in_order(self, ran: Tensor, fill: float) -> Tensor:
        """`[batch ran …]`, as the passes ran it, in the order of the sequence."""
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
    """The passes that fill every `latent_token` with a thought.

    Raises:
        ValueError: A row begins with a thought, which would be made from nothing.
    """
    _n_batch, n_pos = tokens.shape
    real = torch.ones_like(tokens, dtype=torch.bool)
    if attention_mask is not None:
        real = attention_mask.bool()
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    # Of each row, the column of its first, second, … real position, those of padding at the end
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
    """Columns of the thoughts of each row; −1 where it has no more."""
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
    """The real positions at which each pass begins and ends in each row."""
    at = positions.gather(1, thought_at.clamp(min=0))
    if thought_at.shape[1]:
        # A row waits at its last thought while others go on; one without any goes as far as
        # the others' first pass
        last = at.gather(1, (n_thoughts - 1).clamp(min=0)[:, None])
        first = at[:, 0][n_thoughts > 0].max().clamp(max=length)[:, None]
        waits = torch.where((n_thoughts == 0)[:, None], first, last)
        at = torch.where(thought_at >= 0, at, waits)
    zero, end = at.new_zeros(len(at), 1), length[:, None]
    bounds = torch.cat((zero, at, end), dim=1).T
    return bounds[:-1], bounds[1:]
