"""Edits of the state that one loop passes to the next: realign and skip."""

from typing import Literal, cast

from pydantic import model_validator
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.components.norm import rms_normalize
from workbench.edits.base import (
    STATE_IN,
    STATE_POST,
    CompiledHooks,
    Edit,
    Positions,
    chosen_positions,
    looping,
)
from workbench.edits.firing import where
from workbench.hooks import HookPoint, at_loop, loop_of
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.phi import Phi
from workbench.registries import EDITS
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


@EDITS.register("realign", example={"alpha": 0.25, "scale": "state", "target": "bridge"})
class Realign(Edit):
    """Between loops, move a state towards a token's embedding: H ← (1−α)H + α·s·W[token].

    This is DiscoLoop's training-free intervention. `target` selects the embedding: the token that
    the state decodes to (`decoded`, which uses no label), Φ of the state (`phi`), the true bridge
    (`bridge`, the oracle), or another row's bridge (`shuffled`, the control). `scale` sets the norm
    of the embedding: √d_model (`rms`) or the state's own norm (`state`).
    """

    do: Literal["realign"] = "realign"
    place: str = STATE_IN
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

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        looped = looping(self, model)
        chosen = chosen_positions(self.positions, batch)
        wanted = self._embeddings(looped, batch)

        def realign(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            if self.loops is None and loop_of(hook) == 0:
                if hook.clock.n_loops == 1:
                    raise ConfigError("realign acts between loops; this pass runs a single loop")
                return None
            aim = self._decode(looped, tensor) if wanted is None else wanted
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
        """Return the target bridges' embeddings at the bridges' positions, [batch pos d_model].

        Return None if the target is decoded from the state.
        """
        if self.target in ("decoded", "phi"):
            return None
        bridge = batch.other_bridges() if self.target == "shuffled" else batch.bridge
        aim = model.W_E.new_zeros(*batch.tokens.shape, model.cfg.d_model)
        rows, hops = (batch.bridge >= 0).nonzero(as_tuple=True)
        if bool((bridge[rows, hops] < 0).any()):
            raise ConfigError("target shuffled takes another row's bridge, and there is no other")
        aim[rows, batch.bridge_at[rows, hops]] = model.W_E[bridge[rows, hops]].detach()
        return aim


@EDITS.register("skip", example={"loops": [1]})
class Skip(Edit):
    """Leave out loops: each passes on its input state unchanged."""

    do: Literal["skip"] = "skip"

    @model_validator(mode="after")
    def _check_loops(self) -> "Skip":
        if not self.loops:
            raise ValueError("skip: name the loops to leave out")
        return self

    def hooks(self, model: CanRecord, batch: Batch) -> CompiledHooks:
        looped = looping(self, model)
        if not looped.recurrence.state_is_all:
            raise ConfigError(f"skip: {looped.recurrence.keeps_more}; no loop can be left out")
        chosen = chosen_positions(self.positions, batch)
        held: dict[str, Tensor] = {}

        def hold(tensor: Tensor, /, *, hook: HookPoint) -> None:
            held["state"] = tensor

        def restore(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            state = held["state"]
            return state if chosen is None else where(chosen, state, tensor, STATE_POST)

        loops = self.loops or []
        return [(STATE_IN, at_loop(hold, loops)), (STATE_POST, at_loop(restore, loops))]
