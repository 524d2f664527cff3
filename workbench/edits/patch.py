"""Patching: the values of another run, question, loop or position."""

from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from torch import Tensor

from workbench.config import ConfigError
from workbench.edits.base import PER_QUERY, CompiledHooks, Edit, chosen_positions, where
from workbench.hooks import HookPoint, LoopClock, at_loop
from workbench.models.depth import DepthModel
from workbench.tasks.batch import Batch


class Patch(Edit):
    """Put the values of another run, question, loop or position.

    `run`: another run's model, on the same rows. `question`: another question, in every row.
    `from_loop`, `from_position`: where the values are taken; by default where they are put.
    """

    do: Literal["patch"] = "patch"
    place: str
    run: str | None = None
    question: str | None = None
    from_loop: int | None = None
    from_position: int | None = None

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        run_source = self._source(model, batch)
        chosen = chosen_positions(self.positions, batch)
        ran: dict[int, Tensor] = {}  # the present forward pass, and its source

        def patch(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            clock = hook.clock
            if clock.forwards not in ran:
                ran.clear()
                ran[clock.forwards] = run_source(clock)
            values = self._fit(ran[clock.forwards], tensor, clock.loop, batch)
            return values if chosen is None else where(chosen, values, tensor, self.place)

        return [(self.place, patch if self.loops is None else at_loop(patch, self.loops))]

    def _source(self, model: DepthModel, batch: Batch) -> Callable[[LoopClock], Tensor]:
        """What runs the source as long as a forward pass: [loop batch …], or [batch …] outside."""
        other = model
        if self.run is not None:
            from workbench.runs import load_run

            other = load_run(self.run, model.device).model
        # A twin has no hooks: the source is never edited, whatever is open on the model
        twin = other.twin()
        inputs: dict[str, Any] = batch.inputs
        if self.question is not None:
            inputs = model.ask(self.question)

        # A place before the loops fires before the clock knows how many there will be
        early = not self.place.startswith(("blocks.", "recurrence.", "coda.", "ln_final."))

        def run(clock: LoopClock) -> Tensor:
            loops: int | Tensor = 1 if early else clock.n_loops
            if not early and self.question is None:
                loops = cast(Tensor, clock.valid).sum(0)
            with torch.no_grad():
                _, cache = twin.run_with_cache(**inputs, n_loops=loops, names_filter=self.place)
            return cache[self.place]

        return run

    def _fit(self, values: Tensor, tensor: Tensor, loop: int | None, batch: Batch) -> Tensor:
        """The source's values for one firing, in the shape of what they replace."""
        if loop is not None:
            loop = self.from_loop if self.from_loop is not None else loop
            if not 0 <= loop < len(values):
                raise ConfigError(f"patch: {self.place} has no loop {loop} in its source")
            values = values[loop]
        axis = 2 if self.place.endswith(PER_QUERY) else 1
        n_pos = values.shape[axis]
        if self.from_position is not None:
            if not -n_pos <= self.from_position < n_pos:
                raise ConfigError(
                    f"patch: no position {self.from_position} in a source with {n_pos} positions"
                )
            lengths = batch.length if self.question is None else torch.tensor([n_pos])
            at = (lengths * (self.from_position < 0) + self.from_position).clamp(min=0)
            rows = torch.arange(len(at), device=values.device)
            taken = values.movedim(axis, 1)[rows, at.to(values.device)]  # [batch …]
            values = taken.unsqueeze(axis)
        elif n_pos != tensor.shape[axis]:
            raise ConfigError(
                f"patch: the source has {n_pos} positions, the question {tensor.shape[axis]}; say "
                "from_position and positions"
            )
        try:
            return values.expand_as(tensor)
        except RuntimeError:
            raise ConfigError(
                f"patch: {self.place} is {list(values.shape)} in its source and "
                f"{list(tensor.shape)} here"
            ) from None
