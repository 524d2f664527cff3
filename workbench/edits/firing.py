"""One call of an edit's hook: the tensor that it receives and the entries that it edits.

A thinking model calls hooks with one pass at a time, or, if a plain hook is open, with the whole
sequence once per pass. An edit at a place of the sequence has the same result in both cases,
because a whole sequence is edited in the parts that its passes run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from workbench.hooks import PER_QUERY, HookPoint, LoopClock
from workbench.hooks.passes import Passes
from workbench.settings.config import ConfigError


@dataclass(frozen=True, eq=False)
class Firing:
    """State of a forward pass when a hook fires, and the columns that the hook receives."""

    place: str
    clock: LoopClock
    tokens: Bool[Tensor, "batch pos"] | None = None
    """In looped models: mask of the positions that are not padding."""
    columns: Int[Tensor, "batch width"] | None = None
    """In thinking models: columns of the sequence that the hook receives; −1 is filling."""

    @property
    def by_query(self) -> bool:
        """Whether the tensor at the place has the shape [batch head query_pos key_pos]."""
        return self.place.endswith(PER_QUERY)

    def real(self, tensor: Tensor) -> Bool[Tensor, "*axes"]:
        """Return a mask of the real entries of a tensor, in a shape that broadcasts to it.

        Padding, filling, and rows that do not have this loop or thought are False.
        """
        real = self.tokens if self.columns is None else self.columns >= 0
        axis = 2 if self.by_query else 1
        if real is None or tensor.ndim < 3 or tensor.shape[axis] != real.shape[1]:
            real = torch.ones(len(tensor), 1, dtype=torch.bool, device=tensor.device)
        if self.columns is None and self.clock.loop is not None:
            real = real & cast(Tensor, self.clock.valid)[self.clock.loop][:, None]
        if self.by_query:
            return real[:, None, :, None]
        return real.view(*real.shape, *[1] * (tensor.ndim - 2))


Change = Callable[[Tensor, Firing], Tensor]
Note = Callable[[Tensor, Tensor, Tensor], None]


class SequenceHook:
    """Hook of an edit at a place that a thinking model runs once for every position.

    `loops` are passes: pass 0 is everything before a row's first thought, and pass j is thought
    j − 1 and everything before the next thought. Generated tokens belong to the last pass.
    """

    by_pass = True

    def __init__(
        self,
        place: str,
        loops: list[int] | None,
        chosen: Bool[Tensor, "batch pos"] | None,
        change: Change,
    ) -> None:
        self.place = place
        self.loops = loops
        self.chosen = chosen
        self.change = change
        self.note: Note | None = None  # called with the columns that were edited in each row

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
        clock = hook.clock
        passes = cast(Passes, clock.passes)
        if clock.columns is not None:
            return self._edit(tensor, clock, clock.columns)
        axis = 2 if self.place.endswith(PER_QUERY) else 1
        width = tensor.shape[axis]
        by_position = tensor.movedim(axis, 1)
        for columns in _parts(passes, width, clock.given):
            shown = _take(by_position, columns).movedim(1, axis)
            edited = self._edit(shown, clock, columns).movedim(axis, 1)
            rows, at = (columns >= 0).nonzero(as_tuple=True)
            by_position = by_position.index_put((rows, columns[rows, at]), edited[rows, at])
        return by_position.movedim(1, axis)

    def _edit(self, tensor: Tensor, clock: LoopClock, columns: Tensor) -> Tensor:
        """Return the edited values of a part of the sequence that has the given columns."""
        acts = self._acts(cast(Passes, clock.passes), columns, clock.given)
        changed = self.change(tensor, Firing(self.place, clock, columns=columns))
        if self.note is not None:
            self.note(acts, columns, _own_pass(cast(Passes, clock.passes), columns))
        return where(acts, changed, tensor, self.place)

    def _acts(self, passes: Passes, columns: Tensor, given: int | None) -> Tensor:
        """Return a mask of the columns that the edit acts on."""
        acts = columns >= 0
        if self.chosen is not None:
            known = columns < min(given or self.chosen.shape[1], self.chosen.shape[1])
            acts = acts & known & _take(self.chosen, torch.where(known, columns, -1))
        if self.loops is not None:
            own = _own_pass(passes, columns)
            acts = acts & torch.isin(own, torch.tensor(self.loops, device=own.device))
        return acts


def where(chosen: Tensor, changed: Tensor, tensor: Tensor, place: str) -> Tensor:
    """Return `changed` at the chosen rows and positions, and `tensor` elsewhere.

    Raises:
        ConfigError: The place has no position axis.
    """
    if not place.endswith(PER_QUERY) and tensor.shape[:2] != chosen.shape:
        raise ConfigError(f"{place} has no positions to choose from; leave positions out")
    if place.endswith(PER_QUERY):
        return torch.where(chosen[:, None, :, None], changed, tensor)
    return torch.where(chosen.view(*chosen.shape, *[1] * (tensor.ndim - 2)), changed, tensor)


def _own_pass(passes: Passes, columns: Tensor) -> Tensor:
    """Return the pass that each column belongs to; generated tokens belong to the last pass."""
    known = columns < passes.positions.shape[1]
    own = _take(passes.own_pass, torch.where(known, columns, -1))
    return torch.where(known, own, passes.n_thoughts[:, None])


def _take(by_position: Tensor, columns: Tensor) -> Tensor:
    """Select columns of each row from `[batch pos …]`; filling gets the first column."""
    rows = torch.arange(len(columns), device=columns.device)[:, None]
    return by_position[rows, columns.clamp(min=0)]


def _parts(passes: Passes, width: int, given: int | None) -> Iterator[Tensor]:
    """Yield the columns of the parts to edit: the passes, then any generated tokens."""
    given = width if given is None else given
    for columns in passes.columns:
        yield torch.where(columns < given, columns, -1)
    if given < width:
        appended = torch.arange(given, width, device=passes.positions.device)
        yield appended.expand(len(passes.positions), -1)
