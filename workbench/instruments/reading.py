"""Answers, bridge probabilities and gate values of a batch, after every loop."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.capabilities import CanDecode
from workbench.tasks.batch import Batch

STATE = "recurrence.hook_state_post"
GATE = "recurrence.gate.hook_post"
GATES = (GATE, "recurrence.halt.hook_post")


@dataclass(frozen=True, eq=False)
class Reading:
    """Measurements of one batch after each loop; absent bridges are NaN."""

    right: Bool[Tensor, "loop batch"]
    """Whether the answer, decoded at its position after that loop, is right."""
    loss: Float[Tensor, " batch"]
    """Cross-entropy of the answer after the last loop, in nats."""
    bridge_probability: Float[Tensor, "loop batch hop"]
    """Probability of the bridge token, decoded at the bridge's position."""
    bridge_cosine: Float[Tensor, "loop batch hop"]
    """Cosine of the state at that position with the bridge token's embedding."""
    gates: Mapping[str, Float[Tensor, "fired batch pos share"]]
    """Values of the recurrence's gates, by hook name; NaN at padding."""

    @property
    def accuracy_by_loop(self) -> list[float]:
        """Accuracy after each loop; the first value is Stage-1."""
        return [float(share) for share in self.right.float().mean(1)]

    def bridge_by_loop(self, values: Tensor) -> list[float] | None:
        """Return the mean over all bridges after each loop; None if no row has a bridge."""
        if not bool(values.isfinite().any()):
            return None
        return [float(mean) for mean in values.flatten(1).nanmean(1)]

    def gate_statistics(self) -> dict[str, dict[str, list[float]]]:
        """Return each gate's mean and standard deviation in each loop, over all other axes."""
        found = {}
        for place, gate in self.gates.items():
            real = [shares[shares.isfinite()].float() for shares in gate]  # one tensor per loop
            found[place] = {
                "mean": [float(shares.mean()) for shares in real],
                "sd": [float(shares.std(correction=0)) for shares in real],
            }
        return found


@torch.no_grad()
def read(model: CanDecode, batch: Batch, n_loops: int | None = None) -> Reading:
    """Run a batch once and measure every loop; hooks already open on the model apply first."""
    silent = model.between_places if (n_loops or model.n_loops) == 1 else frozenset()
    gates = [place for place in GATES if place in model.hook_dict and place not in silent]
    places = [STATE, *gates]
    _, cache = model.run_with_cache(
        **batch.inputs, n_loops=n_loops, names_filter=places, logits_at=batch.read_at
    )
    states = cache[STATE]
    logits = torch.stack([answer_logits(model, state, batch) for state in states])
    probability, cosine = read_bridges(model, states, batch)
    return Reading(
        right=logits.argmax(-1) == batch.answer,
        loss=F.cross_entropy(logits[-1].float(), batch.answer, reduction="none"),
        bridge_probability=probability,
        bridge_cosine=cosine,
        gates={
            place: cache[place].masked_fill(batch.is_pad[..., None], torch.nan) for place in gates
        },
    )


def answer_logits(
    model: CanDecode, state: Float[Tensor, "batch pos d_model"], batch: Batch
) -> Float[Tensor, "batch d_vocab"]:
    """Return the logits of a state at the answer position."""
    return model.readout(state, **batch.inputs, logits_at=batch.read_at)


def read_bridges(
    model: CanDecode, states: Float[Tensor, "loop batch pos d_model"], batch: Batch
) -> tuple[Float[Tensor, "loop batch hop"], Float[Tensor, "loop batch hop"]]:
    """Return each bridge's probability, and the state's cosine with its embedding, at its position.

    If no row has a bridge, nothing is decoded, so the model does not need a vocabulary.
    """
    if not batch.bridge.shape[1]:
        nothing = states.new_empty(len(states), len(batch), 0, dtype=torch.float32)
        return nothing, nothing
    there = at_positions(states, batch.bridge_at.clamp(min=0))
    bridge = batch.bridge.clamp(min=0)
    logits = model.decode(there)
    target = bridge[None, :, :, None].expand(len(states), -1, -1, -1)
    probability = logits.float().softmax(-1).gather(-1, target)[..., 0]
    cosine = F.cosine_similarity(there.float(), model.W_E[bridge].float(), dim=-1)
    absent = batch.bridge < 0
    return probability.masked_fill(absent, torch.nan), cosine.masked_fill(absent, torch.nan)


def at_positions(
    states: Float[Tensor, "loop batch pos d_model"], positions: Int[Tensor, "batch hop"]
) -> Float[Tensor, "loop batch hop d_model"]:
    """Return the states at the given positions of each row."""
    rows = torch.arange(len(positions), device=states.device)[:, None]
    return states[:, rows, positions]
