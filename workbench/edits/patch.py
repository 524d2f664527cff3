"""Patching: values from another run, question, row, loop or position."""

from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.base import CompiledHooks, Edit, acting, columns_of
from workbench.edits.firing import Firing
from workbench.edits.source import PatchSource, shown
from workbench.hooks import PER_QUERY
from workbench.registries import EDITS
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


@EDITS.register(
    "patch", example={"place": "recurrence.hook_state_post", "from_loop": 0, "from_position": 1}
)
class Patch(Edit):
    """Replace values with those of another run, question, row, loop or position.

    `run`: another run's model, on the same rows. `question`: another question, used for every row.
    `from_row`: a row of the batch, used for every row; or `other`: each row gets the values of the
    row before it, cyclically among the rows that have this loop or thought, as in
    `Batch.other_bridges`. `from_loop`, `from_position`: where the values are taken from; by default
    the loop and position that are replaced.
    """

    do: Literal["patch"] = "patch"
    place: str
    run: str | None = None
    question: str | None = None
    from_row: int | Literal["other"] | None = None
    from_loop: int | None = None
    from_position: int | None = None

    @model_validator(mode="after")
    def _check_rows(self) -> "Patch":
        if self.question is not None and self.from_row is not None:
            raise ValueError("patch: a question is one row; say question or from_row")
        return self

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        source = PatchSource(self.place, self.run, self.question, model, batch)
        if model.kind.in_passes:
            self._check_thinking(model)
        ran: dict[int, Tensor] = {}  # number of the current forward pass: its source values

        def patch(tensor: Tensor, firing: Firing) -> Tensor:
            clock = firing.clock
            if clock.forwards not in ran:
                ran.clear()
                ran[clock.forwards] = source.values(clock)
            return self._fit(ran[clock.forwards], tensor, firing, source)

        return [(self.place, acting(self, self.place, model, batch, patch))]

    def _check_thinking(self, model: CanRecord) -> None:
        """Check that the place has the positions or loops that the edit takes values from."""
        if self.place in model.looped_places:
            if self.from_position is not None:
                raise ConfigError(f"{self.place} has no positions to take from; say from_loop")
        elif self.from_loop is not None:
            raise ConfigError(
                f"patch: a model that thinks runs each position once, so {self.place} has no loops "
                "to take from; say from_position"
            )

    def _fit(self, values: Tensor, tensor: Tensor, firing: Firing, source: PatchSource) -> Tensor:
        """Return the source's values for one firing, in the shape of the replaced tensor."""
        loop = None
        if firing.columns is None and firing.clock.loop is not None:
            loop = self.from_loop if self.from_loop is not None else firing.clock.loop
            if not 0 <= loop < len(values):
                raise ConfigError(f"patch: {self.place} has no loop {loop} in its source")
            values = values[loop]
        if tensor.ndim > 2:
            values = self._at_position(values, source)
        if self.from_row is not None:
            values = values[self._rows(firing, loop, source)]
        if firing.columns is not None:
            return shown(values, tensor, firing, source.n_pos)
        try:
            return values.expand_as(tensor)
        except RuntimeError:
            raise ConfigError(
                f"patch: {self.place} is {list(values.shape)} in its source and "
                f"{list(tensor.shape)} here"
            ) from None

    def _at_position(self, values: Tensor, source: PatchSource) -> Tensor:
        """Return the source's values at all positions, or at `from_position` of each row."""
        axis = 2 if self.place.endswith(PER_QUERY) else 1
        n_pos = values.shape[axis]
        if self.from_position is None:
            if n_pos != source.n_pos:
                raise ConfigError(
                    f"patch: the source has {n_pos} positions, the question {source.n_pos}; say "
                    "from_position and positions"
                )
            if self.from_row is not None and not source.is_even:
                raise ConfigError(
                    "patch: the rows have lengths of their own; say from_position and positions"
                )
            return values
        if not -n_pos <= self.from_position < n_pos:
            raise ConfigError(
                f"patch: no position {self.from_position} in a source with {n_pos} positions"
            )
        wanted = torch.full((len(source.real),), self.from_position, device=values.device)
        at = columns_of(wanted, source.real).long().argmax(1)  # a short row uses column 0
        rows = torch.arange(len(at), device=values.device)
        return values.movedim(axis, 1)[rows, at].unsqueeze(axis)

    def _rows(self, firing: Firing, loop: int | None, source: PatchSource) -> Tensor:
        """Return the index of the row that each row takes its values from."""
        valid = firing.clock.valid
        has = source.real.any(1)
        if loop is not None and valid is not None:
            has = has & valid[loop]
        what = "row" if loop is None else f"row that has loop {loop}"
        if isinstance(self.from_row, int):
            if not 0 <= self.from_row < len(has) or not bool(has[self.from_row]):
                raise ConfigError(
                    f"patch: row {self.from_row} is no {what} of the {len(has)} in the batch"
                )
            return torch.full_like(has, self.from_row, dtype=torch.long)
        rows = torch.arange(len(has), device=has.device)
        before = torch.where(has, rows, -1).cummax(0).values
        taken = before.roll(1)  # row 0 takes from the last row
        taken = torch.where(taken < 0, before[-1], taken)
        if bool((taken == rows)[has].any()):
            raise ConfigError(f"patch: from_row other takes of another {what}, and there is none")
        return taken
