"""Edits that put other values in a place: zero, mean, add, scale, clamp, freeze."""

from typing import Literal, cast

import torch
from pydantic import model_validator
from torch import Tensor

from workbench.config import ConfigError
from workbench.edits.base import CompiledHooks, Edit, PlaceEdit, chosen_positions, where
from workbench.hooks import HookPoint, loop_of
from workbench.models.depth import DepthModel
from workbench.tasks.batch import Batch


class Zero(PlaceEdit):
    """Put zero."""

    do: Literal["zero"] = "zero"

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        return torch.zeros_like(tensor)


class Mean(PlaceEdit):
    """Put the mean over the rows of the batch."""

    do: Literal["mean"] = "mean"

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        return tensor.mean(0, keepdim=True).expand_as(tensor)


class Add(PlaceEdit):
    """Add a number, or a vector along the last axis."""

    do: Literal["add"] = "add"
    value: float | list[float]

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        if isinstance(self.value, list) and len(self.value) != tensor.shape[-1]:
            raise ConfigError(
                f"add: {len(self.value)} values do not fit {self.place}, which is "
                f"{tensor.shape[-1]} wide"
            )
        return tensor + torch.as_tensor(self.value, dtype=tensor.dtype, device=tensor.device)


class Scale(PlaceEdit):
    """Multiply by a number."""

    do: Literal["scale"] = "scale"
    factor: float

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        return tensor * self.factor


class Clamp(PlaceEdit):
    """Keep values within bounds; equal bounds put a constant."""

    do: Literal["clamp"] = "clamp"
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> "Clamp":
        if self.low is None and self.high is None:
            raise ValueError("clamp needs low, high or both")
        return self

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        return tensor.clamp(self.low, self.high)


class Freeze(Edit):
    """Hold the values that a place has in loop `after` through all later loops."""

    do: Literal["freeze"] = "freeze"
    place: str
    after: int

    @model_validator(mode="after")
    def _check_loops(self) -> "Freeze":
        if self.loops is not None and min(self.loops, default=0) <= self.after:
            raise ValueError(f"freeze: the loops must come after loop {self.after}")
        return self

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)
        held: dict[str, Tensor] = {}
        if self.place in model.hook_dict and self.place not in model.looped_places:
            raise ConfigError(f"freeze: {self.place} is outside the loops")

        def freeze(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            loop = cast(int, loop_of(hook))
            firings = hook.clock.n_loops - (self.place in model.between_places)
            if not 0 <= self.after < firings - 1:
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
