"""Records of what an edit has touched: the rows, loops and positions that it was applied to.

Touched means that the edit was applied, even if no value changed: a scale by 1 touches. The records
cover all batches of a call and are checked at its end. It is an error if no row has a loop or
position that the edit names, or if the edit touched nothing.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from workbench.edits.firing import SequenceHook
from workbench.hooks import PER_QUERY, AtLoop, HookFn, HookPoint, LoopClock
from workbench.settings.config import ConfigError

if TYPE_CHECKING:
    from workbench.capabilities import CanRecord
    from workbench.edits.base import CompiledHooks, Edit
    from workbench.tasks.batch import Batch


class Touch:
    """Record of what one edit has touched so far."""

    def __init__(self, number: int, edit: "Edit") -> None:
        self.number = number  # index of the edit in its list
        self.edit = edit
        self.loops: set[int] = set()
        self.positions: set[int] = set()  # counted from the start of each row
        self.named: set[int] = set()  # positions that the edit names and at least one row has
        self.unit = "loop"  # unit of its loops: loop, pass or thought
        self.n_loops = 0  # maximum number of these
        self._before = 0  # rows of earlier batches
        self._rows = torch.zeros(0, dtype=torch.bool)  # mask of rows touched in the current batch

    @property
    def rows(self) -> int:
        return self._before + int(self._rows.sum())

    def begin(self, batch: "Batch") -> None:
        """Start the next batch."""
        from workbench.edits.base import columns_of, real_tokens

        self._before, self._rows = self.rows, torch.zeros(len(batch), dtype=torch.bool)
        if isinstance(self.edit.positions, list):
            real = real_tokens(batch.inputs)
            for position in self.edit.positions:
                if bool(columns_of(torch.full_like(batch.length, position), real).any()):
                    self.named.add(position)

    def note(self, rows: Tensor, loops: Sequence[int], positions: Tensor | None) -> None:
        """Record the rows (a mask), loops and positions (a mask) that one firing touched."""
        rows = rows.cpu()
        if len(rows) > len(self._rows):
            grown = torch.zeros(len(rows), dtype=torch.bool)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        self._rows[: len(rows)] |= rows
        if bool(rows.any()):
            self.loops.update(loops)
            if positions is not None:
                self.positions.update(positions.nonzero()[:, 0].tolist())

    def to_plain(self) -> dict[str, Any]:
        """Convert to data for JSON."""
        return {
            "rows": self.rows,
            "loops": sorted(self.loops),
            "positions": sorted(self.positions),
        }

    def judge(self) -> None:
        """Check that the edit touched something and that its loops and positions exist.

        Raises:
            ConfigError: No row has a loop or position that the edit names, or it touched nothing.
        """
        name = f"edit {self.number} ({self.edit.name})"
        loops = self.edit.loops if self.edit.names_touched_loops else None
        missing = [loop for loop in loops or () if loop not in self.loops]
        if missing:
            ran = f"numbered 0 to {self.n_loops - 1}" if self.n_loops else "and its place has none"
            raise ConfigError(
                f"{name} names {self.unit} {_listed(missing)}, which no row has; there are "
                f"{self.n_loops} {_plural(self.unit)}, {ran}"
            )
        positions = self.edit.positions
        if isinstance(positions, list) and (absent := sorted({*positions} - self.named)):
            raise ConfigError(f"{name} names position {_listed(absent)}, which no row has")
        if not self.rows:
            where = f": no row has a position {positions!r}" if isinstance(positions, str) else ""
            raise ConfigError(f"{name} touches nothing{where}")


class Watched:
    """Wrapper of an edit's hook that records what the hook touches."""

    def __init__(
        self,
        place: str,
        fn: HookFn | AtLoop,
        touch: Touch,
        model: "CanRecord",
        batch: "Batch",
        judged: bool,
    ) -> None:
        from workbench.edits.base import chosen_positions, most_thoughts, real_tokens

        self.fn = fn
        self.place = place
        self.touch = touch
        self.judged = judged
        self.by_pass: bool = getattr(fn, "by_pass", False)
        self.looped = place in model.looped_places
        self.between = place in model.between_places
        self.own = most_thoughts(model, batch)
        self.seen = 0  # most thoughts in a forward pass so far
        if self.own:
            touch.unit = "thought" if self.looped else "pass"
        if isinstance(fn, SequenceHook):
            fn.note = self._note_columns
            return
        real = real_tokens(batch.inputs)
        self.real = real
        chosen = chosen_positions(touch.edit.positions, batch)
        self.chosen = real if chosen is None else chosen & real

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
        clock = hook.clock
        self.seen = max(self.seen, clock.n_loops - 1)
        if self.looped:
            self.touch.n_loops = max(self.touch.n_loops, clock.n_loops - self.between)
        changed = self.fn(tensor, hook=hook)
        if changed is not None and not isinstance(self.fn, SequenceHook):
            self._note(tensor, clock)
        return changed

    def _note(self, tensor: Tensor, clock: LoopClock) -> None:
        """Record one firing with a tensor `[batch pos …]`, or `[batch …]` of a thought."""
        loop = clock.loop if self.looped else None
        axis = 2 if self.place.endswith(PER_QUERY) else 1
        n_batch, n_pos = self.chosen.shape
        has_pos = tensor.ndim > axis + 1 and tensor.shape[axis] == n_pos and len(tensor) == n_batch
        rows = torch.ones(len(tensor), dtype=torch.bool, device=tensor.device)
        if loop is not None and clock.valid is not None and clock.valid.shape[1] == len(tensor):
            rows = clock.valid[loop]
        positions = None
        if has_pos:
            acts = self.chosen & rows[:, None]
            rows, positions = acts.any(1), _numbered(acts, self.real)
        self.touch.note(rows, [] if loop is None else [loop], positions)

    def _note_columns(self, acts: Tensor, columns: Tensor, own_pass: Tensor) -> None:
        """Record one edited part of a thinking model's sequence."""
        loops = own_pass[acts].unique().tolist()
        self.touch.n_loops = max(self.touch.n_loops, int(own_pass.max()) + 1)
        positions = torch.zeros(int(columns.max()) + 1 if acts.any() else 1, dtype=torch.bool)
        positions[columns[acts].cpu()] = True
        self.touch.note(acts.any(1), loops, positions)

    def judge(self) -> None:
        """Check the edit at the end of the hooks' context, unless a `Watch` does so later."""
        if self.judged and self.seen >= self.own:  # else rows ran with fewer thoughts
            self.touch.judge()


class Watch:
    """Edits applied to all batches of a call, with a record of what each one touched."""

    def __init__(self, edits: Sequence["Edit"]) -> None:
        self.edits = tuple(edits)
        self.touches = [Touch(number, edit) for number, edit in enumerate(edits)]

    def hooks(self, model: "CanRecord", batch: "Batch", *, judged: bool = False) -> "CompiledHooks":
        """Return hooks that apply the edits to one batch.

        Args:
            model: The model.
            batch: The rows.
            judged: Whether the edits are checked when these hooks are removed.
        """
        made: list[tuple[str, Callable[..., Any]]] = []
        for touch in self.touches:
            compiled = touch.edit.hooks(model, batch)
            touch.begin(batch)
            made += [(p, Watched(p, fn, touch, model, batch, judged)) for p, fn in compiled]
        return cast("CompiledHooks", made)

    def finish(self) -> list[dict[str, Any]]:
        """Check all edits and return what each one touched.

        Raises:
            ConfigError: An edit names a loop or position that no row has, or touched nothing.
        """
        for touch in self.touches:
            touch.judge()
        return [touch.to_plain() for touch in self.touches]


def _numbered(acts: Tensor, real: Tensor) -> Tensor:
    """Return a mask of the touched positions, counted from the start of each row's tokens."""
    own = (real.long().cumsum(1) - 1)[acts]
    touched = torch.zeros(real.shape[1], dtype=torch.bool)
    touched[own.cpu()] = True
    return touched


def _plural(unit: str) -> str:
    return "passes" if unit == "pass" else f"{unit}s"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
