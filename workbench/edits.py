"""Interventions: one grammar for code, command line, page and notebook.

An edit names a place, loops, positions and what is done there. A list of edits is plain data: it
goes to JSON and back, and is kept with every result.

    [{"do": "zero", "place": "blocks.0.hook_attn_out", "loops": [1]},
     {"do": "realign", "alpha": 0.5, "scale": "rms"}]

Loops are numbered from 0. Positions are numbers, `bridge` (where the batch's bridges are read) or
`answer` (where its answer is read); left out, an edit acts at all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import torch
from jaxtyping import Bool
from pydantic import Field, TypeAdapter, ValidationError
from torch import Tensor

from workbench.components.norm import rms_normalize
from workbench.config import ConfigError, StrictModel, nearest
from workbench.hooks import AtLoop, HookFn, HookPoint, at_loop, loop_of
from workbench.models.depth import DepthModel
from workbench.recurrence.phi import Phi
from workbench.tasks.batch import Batch

STATE_PRE = "recurrence.hook_state_pre"
STATE_POST = "recurrence.hook_state_post"
PER_QUERY = ("hook_attn_scores", "hook_pattern")  # [batch head query_pos key_pos]
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

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        if self.low is None and self.high is None:
            raise ConfigError("clamp needs low, high or both")
        return tensor.clamp(self.low, self.high)


class Freeze(Edit):
    """Hold the values that a place has in loop `after` through all later loops."""

    do: Literal["freeze"] = "freeze"
    place: str
    after: int

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)
        held: dict[str, Tensor] = {}

        def freeze(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            loop = cast(int, loop_of(hook))
            if loop == self.after:
                held["value"] = tensor
            if loop <= self.after:
                return None
            value = held["value"]
            return value if chosen is None else where(chosen, value, tensor, self.place)

        return [(self.place, freeze)]


class Patch(PlaceEdit):
    """Put the values of another run, question, loop or position.

    `run`: another run's model, on the same rows. `question`: another question, in every row.
    `from_loop`, `from_position`: where the values are taken; by default where they are put.
    """

    do: Literal["patch"] = "patch"
    run: str | None = None
    question: str | None = None
    from_loop: int | None = None
    from_position: int | None = None

    def change(self, tensor: Tensor, loop: int | None) -> Tensor:
        raise NotImplementedError("a patch needs its batch; hooks() makes it")

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        source = self._source(model, batch)  # [loop batch …], or [batch …] outside the loops
        looped = self.place in model.looped_places
        chosen = chosen_positions(self.positions, batch)

        def patch(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            values = source
            if looped:
                loop = self.from_loop if self.from_loop is not None else loop_of(hook)
                if not 0 <= cast(int, loop) < len(source):
                    raise ConfigError(f"patch: {self.place} has no loop {loop} in its source")
                values = source[loop]
            if self.from_position is not None:
                axis = 2 if self.place.endswith(PER_QUERY) else 1
                place = torch.tensor([self.from_position], device=values.device)
                values = values.index_select(axis, place)
            values = values.expand_as(tensor)
            return values if chosen is None else where(chosen, values, tensor, self.place)

        return [(self.place, patch if self.loops is None else at_loop(patch, self.loops))]

    def _source(self, model: DepthModel, batch: Batch) -> Tensor:
        other = model
        if self.run is not None:
            from workbench.runs import load_run

            other = cast(DepthModel, load_run(self.run).model).to(model.device)
        # A twin has no hooks: the source is never edited, whatever is open on the model
        inputs: dict[str, Any] = batch.inputs
        if self.question is not None:
            inputs = {"tokens": model.to_tokens(self.question)}
        with torch.no_grad():
            _, cache = cast(DepthModel, other.twin()).run_with_cache(
                **inputs, n_loops=model.n_loops, names_filter=self.place
            )
        return cache[self.place]


class Realign(Edit):
    """Between loops, move a state towards a token's embedding: H ← (1−α)H + α·s·W[token].

    DiscoLoop's training-free intervention. `target` is the token: the one that the state decodes
    to (no label is used), Φ of the state, the true bridge (the oracle), or the bridge of another
    row (the control). `scale` gives it the norm √d_model (rms) or the state's own (state).
    """

    do: Literal["realign"] = "realign"
    place: str = STATE_PRE
    positions: Positions | None = "bridge"
    alpha: float = 0.5
    scale: Literal["rms", "state"] = "rms"
    target: Literal["decoded", "phi", "bridge", "shuffled"] = "decoded"

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        loops = self.loops or list(range(1, model.n_loops))
        chosen = chosen_positions(self.positions, batch)
        wanted = self._embeddings(model, batch)

        def realign(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            aim = self._decode(model, tensor) if wanted is None else wanted
            unit = rms_normalize(aim)
            if self.scale == "state":
                size = tensor.norm(dim=-1, keepdim=True)
                unit = aim / aim.norm(dim=-1, keepdim=True).clamp(min=1e-12) * size
            moved = (1 - self.alpha) * tensor + self.alpha * unit
            return moved if chosen is None else where(chosen, moved, tensor, self.place)

        return [(self.place, at_loop(realign, loops))]

    def _decode(self, model: DepthModel, state: Tensor) -> Tensor:
        decoding: Literal["soft", "hard"] = "soft" if self.target == "phi" else "hard"
        return cast(Tensor, Phi(decoding, tau=1.0, top_k=None)(state, model))

    def _embeddings(self, model: DepthModel, batch: Batch) -> Tensor | None:
        """Embeddings of known bridges where they are read, [batch pos d_model]."""
        if self.target in ("decoded", "phi"):
            return None
        if self.target == "shuffled" and len(batch) < 2:
            raise ConfigError("target shuffled takes another row's bridge; one row has no other")
        bridge = batch.bridge.roll(1, 0) if self.target == "shuffled" else batch.bridge
        aim = model.W_E.new_zeros(*batch.tokens.shape, model.cfg.d_model)
        rows, hops = (batch.bridge >= 0).nonzero(as_tuple=True)
        aim[rows, batch.bridge_at[rows, hops]] = model.W_E[bridge[rows, hops].clamp(min=0)].detach()
        return aim


class Skip(Edit):
    """Leave the state as it was: the blocks of these loops change nothing."""

    do: Literal["skip"] = "skip"
    loops: list[int] | None

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)
        held: dict[str, Tensor] = {}

        def hold(tensor: Tensor, /, *, hook: HookPoint) -> None:
            held["state"] = tensor

        def restore(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            state = held["state"]
            return state if chosen is None else where(chosen, state, tensor, STATE_POST)

        loops = self.loops or []
        return [(STATE_PRE, at_loop(hold, loops)), (STATE_POST, at_loop(restore, loops))]


AnyEdit = Annotated[
    Zero | Mean | Add | Scale | Clamp | Freeze | Patch | Realign | Skip, Field(discriminator="do")
]
EDITS: tuple[type[Edit], ...] = (Zero, Mean, Add, Scale, Clamp, Freeze, Patch, Realign, Skip)
_ADAPTER: TypeAdapter[list[Edit]] = TypeAdapter(list[AnyEdit])


def parse_edits(data: Any) -> list[Edit]:
    """Edits from plain data.

    Raises:
        ConfigError: An edit is unknown, or a field of it is unknown, missing or wrong.
    """
    if not isinstance(data, list):
        raise ConfigError("edits are a list, each with its 'do' and 'place'")
    names = {cls.model_fields["do"].default: cls for cls in EDITS}
    for number, item in enumerate(data):
        do = item.get("do") if isinstance(item, dict) else None
        if do not in names:
            raise ConfigError(f"edit {number} does {do!r}; {nearest(str(do), names)}")
        for field in item:
            if field not in names[do].model_fields:
                near = nearest(field, names[do].model_fields)
                raise ConfigError(f"edit {number} ({do}) has no field {field!r}; {near}")
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        problem = error.errors()[0]
        path = ".".join(map(str, problem["loc"][2:]))
        raise ConfigError(f"edit {problem['loc'][0]}: {path}: {problem['msg']}") from None


def edit_hooks(edits: Sequence[Edit], model: DepthModel, batch: Batch) -> CompiledHooks:
    """TransformerLens hooks that carry out edits, in order, on one batch."""
    return [hook for edit in edits for hook in edit.hooks(model, batch)]


def to_plain(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Edits as data for JSON."""
    return [edit.model_dump(exclude_none=True) for edit in edits]


def chosen_positions(positions: Positions | None, batch: Batch) -> Bool[Tensor, "batch pos"] | None:
    """Which positions of which rows an edit acts on; None for all."""
    if positions is None:
        return None
    n_batch, n_pos = batch.tokens.shape
    chosen = torch.zeros(n_batch, n_pos + 1, dtype=torch.bool, device=batch.tokens.device)
    if positions == "answer":
        chosen.scatter_(1, batch.read_at[:, None], True)
    elif positions == "bridge":
        # −1 marks an absent bridge; it lands in the spare column
        at = batch.bridge_at.where(batch.bridge_at >= 0, torch.full_like(batch.bridge_at, n_pos))
        chosen.scatter_(1, at, True)
    else:
        for position in positions:
            if not -n_pos <= position < n_pos:
                raise ConfigError(f"position {position} of a question with {n_pos} positions")
            chosen[:, position % n_pos] = True
    return chosen[:, :n_pos]


def where(chosen: Tensor, changed: Tensor, tensor: Tensor, place: str) -> Tensor:
    """`changed` at the chosen rows and positions, `tensor` elsewhere."""
    if place.endswith(PER_QUERY):
        return torch.where(chosen[:, None, :, None], changed, tensor)
    return torch.where(chosen.view(*chosen.shape, *[1] * (tensor.ndim - 2)), changed, tensor)
