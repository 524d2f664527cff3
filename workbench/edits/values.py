"""Edits that replace the values at a place: zero, mean, add, scale, clamp, freeze."""

from typing import Literal, cast

import torch
from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.base import (
    CompiledHooks,
    Edit,
    PlaceEdit,
    chosen_positions,
    most_thoughts,
)
from workbench.edits.firing import Firing, where
from workbench.hooks import PER_QUERY, HookPoint, loop_of
from workbench.registries import EDITS
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


@EDITS.register(
    "zero", example={"place": "blocks.0.hook_attn_out", "loops": [1], "positions": [0, -1]}
)
class Zero(PlaceEdit):
    """Replace values with zero."""

    do: Literal["zero"] = "zero"

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        return torch.zeros_like(tensor)


@EDITS.register("mean", example={"place": "blocks.0.hook_attn_out"})
class Mean(PlaceEdit):
    """Replace values with their mean over the rows that have this position, loop or thought.

    In a thinking model, rows have their thoughts at different positions. A position is therefore
    averaged with the positions at the same distance from the start of the pass that runs it.
    """

    do: Literal["mean"] = "mean"

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        if model.kind.in_passes and self.place.endswith(PER_QUERY):
            raise ConfigError(
                f"mean: rows that think have their keys in places of their own, so {self.place} "
                "has no mean over rows; hook_z has"
            )
        return super().hooks(model, batch)

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        real = firing.real(tensor)
        total = torch.where(real, tensor, 0).sum(0, keepdim=True)
        return (total / real.sum(0, keepdim=True).clamp(min=1)).expand_as(tensor)


@EDITS.register(
    "add", example={"place": "blocks.0.hook_attn_out", "value": 0.5, "positions": "bridge"}
)
class Add(PlaceEdit):
    """Add a number, or a vector along the last axis."""

    do: Literal["add"] = "add"
    value: float | list[float]

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        vector = isinstance(self.value, list)
        if vector and model.kind.in_passes and self.place.endswith(PER_QUERY):
            raise ConfigError(
                f"add: {self.place} of a model that thinks has the keys so far for its last axis; "
                "add a number"
            )
        return super().hooks(model, batch)

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        if isinstance(self.value, list) and len(self.value) != tensor.shape[-1]:
            raise ConfigError(
                f"add: {len(self.value)} values do not fit {self.place}, which is "
                f"{tensor.shape[-1]} wide"
            )
        return tensor + torch.as_tensor(self.value, dtype=tensor.dtype, device=tensor.device)


@EDITS.register(
    "scale", example={"place": "blocks.0.hook_attn_out", "factor": 2.0, "positions": "answer"}
)
class Scale(PlaceEdit):
    """Multiply values by a number."""

    do: Literal["scale"] = "scale"
    factor: float

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        return tensor * self.factor


@EDITS.register("clamp", example={"place": "blocks.0.hook_attn_out", "low": -0.5})
class Clamp(PlaceEdit):
    """Clamp values to bounds; equal bounds set a constant."""

    do: Literal["clamp"] = "clamp"
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> "Clamp":
        if self.low is None and self.high is None:
            raise ValueError("clamp needs low, high or both")
        return self

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        return tensor.clamp(self.low, self.high)


@EDITS.register("freeze", example={"place": "blocks.0.hook_attn_out", "after": 0})
class Freeze(Edit):
    """Hold the values of a place in loop `after` through all later loops.

    In a thinking model, only places of the recurrence can be frozen, such as
    `recurrence.hook_stream` for the memory. The paper's "write frozen after k" is a different edit:
    zero at `recurrence.write.hook_post` in the loops from k on. Nothing is written any more, and
    the stream's norm still acts.
    """

    do: Literal["freeze"] = "freeze"
    place: str
    after: int

    @model_validator(mode="after")
    def _check_loops(self) -> "Freeze":
        if self.loops is not None and min(self.loops, default=0) <= self.after:
            raise ValueError(f"freeze: the loops must come after loop {self.after}")
        return self

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)
        held: dict[str, Tensor] = {}
        self._check_place(model)
        own = most_thoughts(model, batch)

        def freeze(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            loop = cast(int, loop_of(hook))
            firings = hook.clock.n_loops - (self.place in model.between_places)
            if not 0 <= self.after < firings - 1:
                if firings < own:  # this pass runs fewer thoughts than the questions have
                    return None
                raise ConfigError(
                    f"freeze: after={self.after} leaves no loop to hold it in; {self.place} comes "
                    f"in {firings} loops, numbered 0 to {firings - 1}"
                )
            if loop == self.after:
                held["value"] = tensor
            if loop <= self.after or (self.loops is not None and loop not in self.loops):
                return None
            value = held["value"]
            return value if chosen is None else where(chosen, value, tensor, self.place)

        return [(self.place, freeze)]

    def _check_place(self, model: CanRecord) -> None:
        """Check that the place fires again in later loops and has the positions of the edit."""
        thinks = model.kind.in_passes
        if self.place in model.hook_dict and self.place not in model.looped_places:
            if thinks:
                raise ConfigError(
                    f"freeze: a model that thinks runs each position once, so {self.place} has no "
                    "later loop to be held in; name a place of the recurrence"
                )
            raise ConfigError(f"freeze: {self.place} is outside the loops")
        if thinks and self.positions is not None:
            raise ConfigError(f"{self.place} has no positions to choose from; leave positions out")
