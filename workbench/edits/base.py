"""What all edits share: loops, positions, and hooks that carry them out."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Int
from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.firing import Change, Firing, SequenceHook, where
from workbench.hooks import AtLoop, HookFn, HookPoint, at_loop
from workbench.kinds import depth_model, thought_model
from workbench.models.loops.depth import DepthModel
from workbench.models.thoughts.thought import ThoughtModel
from workbench.settings.config import ConfigError, StrictModel
from workbench.tasks.batch import Batch

STATE_IN = "recurrence.hook_state_in"
STATE_PRE = "recurrence.hook_state_pre"
STATE_POST = "recurrence.hook_state_post"
LOOP_EMBED = "recurrence.hook_loop_embed"
THOUGHT = "recurrence.hook_thought"
SCORES = "hook_attn_scores"
Positions = list[int] | Literal["bridge", "answer"]
CompiledHooks = list[tuple[str, HookFn | AtLoop]]


class Edit(StrictModel, ABC):
    """What all edits share."""

    loops: list[int] | None = None
    positions: Positions | None = None
    names_touched_loops: ClassVar[bool] = True
    """Whether `loops` are the loops that change; an edit of their order changes others too."""

    @model_validator(mode="after")
    def _check_some(self) -> "Edit":
        for field in ("loops", "positions"):
            if getattr(self, field) == []:
                raise ValueError(f"{field} is empty, so that nothing is edited; leave it out")
        return self

    @property
    def name(self) -> str:
        """What is done, and where, in a few words."""
        place = getattr(self, "place", None)
        return _do(self) + (f" at {place}" if place else "")

    @abstractmethod
    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        """Hooks that carry the edit out on this batch."""


class PlaceEdit(Edit):
    """An edit that computes new values from the old ones at one place."""

    place: str

    @abstractmethod
    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        """The values that stand in place of `tensor`."""

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        return [(self.place, acting(self, self.place, model, batch, self._masked))]

    def _masked(self, tensor: Tensor, firing: Firing) -> Tensor:
        """The new values; what a query may not look at stays out of its sight."""
        changed = self.change(tensor, firing)
        if self.place.endswith(SCORES):
            return torch.where(tensor == -torch.inf, tensor, changed)
        if firing.columns is not None and firing.by_query:
            # Only the keys so far are here: to change none that come later, change none unseen
            return torch.where(tensor == 0, tensor, changed)
        return changed


def acting(
    edit: Edit, place: str, model: CanRecord, batch: Batch, change: Change
) -> HookFn | AtLoop:
    """A hook that puts what `change` gives at an edit's loops and positions.

    A model that thinks keeps its cache of keys and values under it.

    Raises:
        ConfigError: The edit chooses positions where there are none.
    """
    chosen = chosen_positions(edit.positions, batch)
    between = place in model.looped_places
    if model.kind.in_passes and not between:
        return SequenceHook(place, edit.loops, chosen, change)
    if model.kind.in_passes and chosen is not None:
        raise ConfigError(f"{place} has no positions to choose from; leave positions out")
    tokens = None if model.kind.in_passes else real_tokens(batch.inputs)

    def act(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
        changed = change(tensor, Firing(place, hook.clock, tokens))
        return changed if chosen is None else where(chosen, changed, tensor, place)

    return act if edit.loops is None else at_loop(act, edit.loops)


def real_tokens(inputs: dict[str, Any]) -> Bool[Tensor, "batch pos"]:
    """Which tokens of a model's inputs are no padding."""
    mask = inputs.get("attention_mask")
    tokens: Tensor = inputs["tokens"]
    return torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask.bool()


def columns_of(
    positions: Int[Tensor, " batch"], real: Bool[Tensor, "batch pos"]
) -> Bool[Tensor, "batch pos"]:
    """Where one position of each row stands, negative ones counted from the row's own end.

    A row that is too short has no such position.
    """
    at = positions + real.sum(1) * (positions < 0)
    return real & (real.long().cumsum(1) - 1 == at[:, None])


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
        real = real_tokens(batch.inputs)
        for position in positions:
            if not -n_pos <= position < n_pos:
                raise ConfigError(f"position {position} of a question with {n_pos} positions")
            chosen[:, :n_pos] |= columns_of(torch.full_like(batch.length, position), real)
    return chosen[:, :n_pos]


def most_thoughts(model: CanRecord, batch: Batch) -> int:
    """Thoughts of the row of a batch that has most; none in models that loop."""
    return model.kind.most_thoughts(model, batch)


def looping(edit: Edit, model: CanRecord) -> DepthModel:
    """The model, which an edit needs to be one that loops.

    Raises:
        ConfigError: It thinks.
    """
    return depth_model(model, f"the edit {_do(edit)}")


def thinking(edit: Edit, model: CanRecord) -> ThoughtModel:
    """The model, which an edit needs to be one that thinks.

    Raises:
        ConfigError: It loops.
    """
    return thought_model(model, f"the edit {_do(edit)}")


def _do(edit: Edit) -> str:
    return str(type(edit).model_fields["do"].default)
