"""Base classes of edits: their loops, their positions and the hooks that apply them."""

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
    """Base class of all edits."""

    loops: list[int] | None = None
    positions: Positions | None = None
    names_touched_loops: ClassVar[bool] = True
    """Whether only `loops` change; an edit of the loop order changes other loops too."""

    @model_validator(mode="after")
    def _check_some(self) -> "Edit":
        for field in ("loops", "positions"):
            if getattr(self, field) == []:
                raise ValueError(f"{field} is empty, so that nothing is edited; leave it out")
        return self

    @property
    def name(self) -> str:
        """The action and its place, in a few words."""
        place = getattr(self, "place", None)
        return _do(self) + (f" at {place}" if place else "")

    @abstractmethod
    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        """Return hooks that apply the edit to this batch."""


class PlaceEdit(Edit):
    """Base class of edits that compute new values from the old ones at one place."""

    place: str

    @abstractmethod
    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        """Return the values that replace `tensor`."""

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        return [(self.place, acting(self, self.place, model, batch, self._masked))]

    def _masked(self, tensor: Tensor, firing: Firing) -> Tensor:
        """Return the new values, with masked-out keys kept masked out."""
        changed = self.change(tensor, firing)
        if self.place.endswith(SCORES):
            return torch.where(tensor == -torch.inf, tensor, changed)
        if firing.columns is not None and firing.by_query:
            # Only the keys so far are here. Later keys stay unedited, so all masked keys must
            return torch.where(tensor == 0, tensor, changed)
        return changed


def acting(
    edit: Edit, place: str, model: CanRecord, batch: Batch, change: Change
) -> HookFn | AtLoop:
    """Build a hook that applies `change` at an edit's loops and positions.

    A thinking model can still use its key-value cache with this hook.

    Raises:
        ConfigError: The edit specifies positions at a place without positions.
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
    """Return a mask of the tokens in a model's inputs that are not padding."""
    mask = inputs.get("attention_mask")
    tokens: Tensor = inputs["tokens"]
    return torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask.bool()


def columns_of(
    positions: Int[Tensor, " batch"], real: Bool[Tensor, "batch pos"]
) -> Bool[Tensor, "batch pos"]:
    """Return a mask of the column of one position per row; negative ones count from the row's end.

    The mask is empty for a row that is too short to have the position.
    """
    at = positions + real.sum(1) * (positions < 0)
    return real & (real.long().cumsum(1) - 1 == at[:, None])


def chosen_positions(positions: Positions | None, batch: Batch) -> Bool[Tensor, "batch pos"] | None:
    """Return a mask of the positions that an edit acts on, by row; None means all.

    Raises:
        ConfigError: The rows have no bridges, or a position is out of range.
    """
    if positions is None:
        return None
    n_batch, n_pos = batch.tokens.shape
    chosen = torch.zeros(n_batch, n_pos + 1, dtype=torch.bool, device=batch.tokens.device)
    if positions == "answer":
        chosen.scatter_(1, batch.read_at[:, None], True)
    elif positions == "bridge":
        if not batch.bridge.shape[1]:
            raise ConfigError("these questions have no bridge; say positions by number, or answer")
        # −1 marks an absent bridge, which goes to the extra last column
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
    """Return the largest number of thoughts in a row of a batch; 0 for looped models."""
    return model.kind.most_thoughts(model, batch)


def looping(edit: Edit, model: CanRecord) -> DepthModel:
    """Check that the model of an edit loops, and return it.

    Raises:
        ConfigError: The model thinks.
    """
    return depth_model(model, f"the edit {_do(edit)}")


def thinking(edit: Edit, model: CanRecord) -> ThoughtModel:
    """Check that the model of an edit thinks, and return it.

    Raises:
        ConfigError: The model loops.
    """
    return thought_model(model, f"the edit {_do(edit)}")


def _do(edit: Edit) -> str:
    return str(type(edit).model_fields["do"].default)
