"""Interventions: one grammar for code, command line, page and notebook.

An edit names a place, loops, positions and what is done there. A list of edits is plain data: it
goes to JSON and back, and is kept with every result.

    [{"do": "zero", "place": "blocks.0.hook_attn_out", "loops": [1]},
     {"do": "realign", "alpha": 0.5, "scale": "rms"}]

Loops are numbered from 0. Positions are numbers, `bridge` (where the batch's bridges are read) or
`answer` (where its answer is read); left out, an edit acts at all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, cast

import torch
from jaxtyping import Bool
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from torch import Tensor

from workbench.components.norm import rms_normalize
from workbench.config import ConfigError, StrictModel, nearest
from workbench.hooks import AtLoop, HookFn, HookPoint, LoopClock, at_loop, loop_of
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
            inputs = {"tokens": model.to_tokens(self.question)}

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

    @model_validator(mode="after")
    def _check_positions(self) -> "Realign":
        if self.target in ("bridge", "shuffled") and self.positions != "bridge":
            raise ValueError(
                f"realign: target={self.target!r} acts where bridges are read; leave positions out"
            )
        return self

    def hooks(self, model: DepthModel, batch: Batch) -> CompiledHooks:
        chosen = chosen_positions(self.positions, batch)
        wanted = self._embeddings(model, batch)

        def realign(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            if self.loops is None and loop_of(hook) == 0:
                if hook.clock.n_loops == 1:
                    raise ConfigError("realign acts between loops; this pass runs a single loop")
                return None
            aim = self._decode(model, tensor) if wanted is None else wanted
            unit = rms_normalize(aim)
            if self.scale == "state":
                size = tensor.norm(dim=-1, keepdim=True)
                unit = aim / aim.norm(dim=-1, keepdim=True).clamp(min=1e-12) * size
            moved = (1 - self.alpha) * tensor + self.alpha * unit
            return moved if chosen is None else where(chosen, moved, tensor, self.place)

        return [(self.place, realign if self.loops is None else at_loop(realign, self.loops))]

    def _decode(self, model: DepthModel, state: Tensor) -> Tensor:
        decoding: Literal["soft", "hard"] = "soft" if self.target == "phi" else "hard"
        return cast(Tensor, Phi(decoding, tau=1.0, top_k=None)(state, model))

    def _embeddings(self, model: DepthModel, batch: Batch) -> Tensor | None:
        """Embeddings of known bridges where they are read, [batch pos d_model]."""
        if self.target in ("decoded", "phi"):
            return None
        bridge = batch.other_bridges() if self.target == "shuffled" else batch.bridge
        aim = model.W_E.new_zeros(*batch.tokens.shape, model.cfg.d_model)
        rows, hops = (batch.bridge >= 0).nonzero(as_tuple=True)
        if bool((bridge[rows, hops] < 0).any()):
            raise ConfigError("target shuffled takes another row's bridge, and there is no other")
        aim[rows, batch.bridge_at[rows, hops]] = model.W_E[bridge[rows, hops]].detach()
        return aim


class Skip(Edit):
    """Leave the state as it was: the blocks of these loops change nothing."""

    do: Literal["skip"] = "skip"

    @model_validator(mode="after")
    def _check_loops(self) -> "Skip":
        if not self.loops:
            raise ValueError("skip: name the loops to leave out")
        return self

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
_ADAPTER: TypeAdapter[Any] = TypeAdapter(list[AnyEdit])


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
        return cast(list[Edit], _ADAPTER.validate_python(data))
    except ValidationError as error:
        problem = error.errors()[0]
        path = ".".join(map(str, problem["loc"][2:]))
        message = problem["msg"].removeprefix("Value error, ")
        parts = [f"edit {problem['loc'][0]}", path, message]
        raise ConfigError(": ".join(part for part in parts if part)) from None


def edit_hooks(edits: Sequence[Edit], model: DepthModel, batch: Batch) -> CompiledHooks:
    """TransformerLens hooks that carry out edits, in order, on one batch."""
    return [hook for edit in edits for hook in edit.hooks(model, batch)]


def to_plain(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Edits as data for JSON, without what is None by default."""
    return [
        {
            name: value
            for name, value in edit.model_dump().items()
            if value is not None or type(edit).model_fields[name].default is not None
        }
        for edit in edits
    ]


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
            # Counted from its own end in every row; a row that is too short has no such position
            at = (
                batch.length + position if position < 0 else torch.full_like(batch.length, position)
            )
            chosen.scatter_(1, at.where(at >= 0, torch.full_like(at, n_pos))[:, None], True)
    return chosen[:, :n_pos]


def where(chosen: Tensor, changed: Tensor, tensor: Tensor, place: str) -> Tensor:
    """`changed` at the chosen rows and positions, `tensor` elsewhere."""
    if place.endswith(PER_QUERY):
        return torch.where(chosen[:, None, :, None], changed, tensor)
    return torch.where(chosen.view(*chosen.shape, *[1] * (tensor.ndim - 2)), changed, tensor)
