"""What all edits share: loops, positions, and hooks that carry them out."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from workbench.config import ConfigError, StrictModel
from workbench.hooks import PER_QUERY, AtLoop, HookFn, HookPoint, at_loop, loop_of
from workbench.models.depth import DepthModel
from workbench.tasks.batch import Batch

STATE_PRE = "recurrence.hook_state_pre"
STATE_POST = "recurrence.hook_state_post"
LOOP_EMBED = "recurrence.hook_loop_embed"
Positions = list[int] | Literal["bridge", "answer"]
CompiledHooks = list[tuple[str, HookFn | AtLoop]]


class Edit(StrictModel, ABC):
    """What all edits share."""

    loops: list[int] | None = None
    positions: Positions | None = None

    @abstractmethod
    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        """Hooks that carry the edit out on this batch."""


class PlaceEdit(Edit):
    """An edit that computes new values from the old ones at one place."""

    place: str

    @abstractmethod
    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        """The values that stand in place of `tensor`."""

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)

        def edit(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            changed = self.change(tensor, loop_of(hook))
            return changed if chosen is None else where(chosen, changed, tensor, self.place)

        return [(self.place, edit if self.loops is None else at_loop(edit, self.loops))]


def chosen_positions(positions: Positions | None, batch: Batch) -> Bool[Tensor, "batch pos"] | None:
    """Which positions of which rows an edit acts on; None for all."""
    if positions is None:
        return None
    n_batch, n_pos = batch.tokens.shape
    chosen = torch.zeros(n_batch, n_pos + 1, dtype=torch.bool, device=batch.tokens.device)
    if positions == "answer":
        chosen.scatter_(1, batch.read_at[:, None], True)
    elif positions == "bridge":
        if not batch.bridge.shape[1]:
            raise ConfigError("these questions have no bridge; say positions by number, or answer")
        # −1 marks an absent bridge; it lands in the spare column
        at = batch.bridge_at.where(batch.bridge_at >= 0, torch.full_like(batch.bridge_at, n_pos))
        chosen.scatter_(1, at, True)
    else:
        for position in positions:
            if not -n_pos <= position < n_pos:
                raise ConfigError(f"position {position} of a question with {n_pos} positions")
            # Counted from its own end in every row; a row that is too short has no such position
            at = (
                batch.length + position if position < 0 else torch.full_like(batch.length, position)
            )
            chosen.scatter_(1, at.where(at >= 0, torch.full_like(at, n_pos))[:, None], True)
    return chosen[:, :n_pos]


def where(chosen: Tensor, changed: Tensor, tensor: Tensor, place: str) -> Tensor:
    """`changed` at the chosen rows and positions, `tensor` elsewhere.

    Raises:
        ConfigError: The place has no position axis.
    """
    if not place.endswith(PER_QUERY) and tensor.shape[:2] != chosen.shape:
        raise ConfigError(f"{place} has no positions to choose from; leave positions out")
    if place.endswith(PER_QUERY):
        return torch.where(chosen[:, None, :, None], changed, tensor)
    return torch.where(chosen.view(*chosen.shape, *[1] * (tensor.ndim - 2)), changed, tensor)
