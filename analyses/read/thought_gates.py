"""What do the gates of the concept stream let through, by thought and channel?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.labels import thought_label
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.thought_states import thought_states
from workbench.capabilities import CanThink
from workbench.tasks.worded.rows import WordedBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

GATES = ("read", "forget", "write")
SHUT, OPEN = 0.1, 0.9  # gate values below or above these count as saturated


@dataclass(frozen=True, eq=False)
class ThoughtGates(Result):
    """Read, forget and write gates of AGCLR, by thought and channel, before and after the sigmoid.

    The convention is that of equations 3 and 4 of arXiv 2606.07720, h' = (1 − f)·h + r·c and
    c ← LN(c + w·h'). Shares after the sigmoid lie between 0 and 1. Read r is the share of the
    previous thought's stream that enters the thought; at the first thought that stream is empty.
    Forget f is the share of the state that is erased: 1 erases h, 0 keeps it whole. Write w is the
    share of the new thought that enters the stream. The control is an untrained twin, whose shares
    are σ(b) of the initial biases.
    """

    before: Float[Tensor, "gate thought channel"]
    """Mean over questions of the sigmoid's input."""
    before_sd: Float[Tensor, "gate thought channel"]
    after: Float[Tensor, "gate thought channel"]
    """Mean over questions of the share."""
    after_sd: Float[Tensor, "gate thought channel"]
    """Standard deviation of the share between questions."""
    mean: Float[Tensor, "gate thought"]
    """Mean share over questions and channels."""
    low: Float[Tensor, "gate thought"]
    high: Float[Tensor, "gate thought"]
    sd: Float[Tensor, "gate thought"]
    """Standard deviation of the share over questions and channels together."""
    shut: Float[Tensor, "gate thought"]
    """Share of all these values that is below .1."""
    open: Float[Tensor, "gate thought"]
    """Share of all these values that is above .9."""
    untrained: Float[Tensor, "gate thought"]
    """Mean share in a model of the same shape with fresh weights."""
    order: Int[Tensor, " channel"]
    """Index of the channel in each column: one order for all gates and thoughts, by mean read."""
    n: Int[Tensor, " thought"]
    """Number of questions that have such a thought."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        n_gates, n_thoughts, n_channels = self.after.shape
        gate, thought, column = torch.meshgrid(
            *(torch.arange(size) for size in (n_gates, n_thoughts, n_channels)), indexing="ij"
        )
        by_channel = {
            "before": self.before,
            "before_sd": self.before_sd,
            "mean": self.after,
            "sd": self.after_sd,
        }
        by_thought = {
            "gate_mean": self.mean,
            "gate_low": self.low,
            "gate_high": self.high,
            "gate_sd": self.sd,
            "gate_shut": self.shut,
            "gate_open": self.open,
            "untrained": self.untrained,
        }
        wide = {
            name: values[..., None].expand_as(self.after) for name, values in by_thought.items()
        }
        labels = [thought_label(number) for number in range(n_thoughts)]
        columns = {
            "gate": [GATES[index] for index in gate.flatten().tolist()],
            "thought": [labels[number] for number in thought.flatten().tolist()],
            "channel": self.order[column.flatten()].tolist(),
        }
        numbers = {name: v.flatten().tolist() for name, v in (by_channel | wide).items()}
        return pd.DataFrame(columns | numbers | {"n": self.n[thought.flatten()].tolist()})

    def figure(self) -> "go.Figure":
        from analyses.read.thought_gates_figure import thought_gates_figure

        return thought_gates_figure(self)

    def summary(self) -> str:
        last = self.mean.shape[1]
        parts = [
            f"{gate} {self.mean[i, 0]:.3f} ± {self.sd[i, 0]:.3f} at thought 1, "
            f"{self.mean[i, -1]:.3f} ± {self.sd[i, -1]:.3f} at thought {last}, there "
            f"{self.shut[i, -1]:.0%} below {SHUT} and {self.open[i, -1]:.0%} above {OPEN} "
            f"(untrained {self.untrained[i].mean():.3f})"
            for i, gate in enumerate(GATES)
        ]
        return f"{'; '.join(parts)}; mean ± sd over questions and channels, n={int(self.n[0])}"


@torch.no_grad()
def thought_gates(model: CanThink, batch: WordedBatch) -> ThoughtGates:
    """Measure the read, forget and write gates by thought and channel.

    Args:
        model: An agclr model; hooks that are active on it apply first.
        batch: The questions.

    Raises:
        ValueError: The family has no gates, or no question has a thought.
    """
    after = [f"recurrence.{gate}.hook_post" for gate in GATES]
    before = [f"recurrence.{gate}.hook_pre" for gate in GATES]
    if after[0] not in model.hook_dict:
        raise ValueError(
            f"family {model.cfg.family} has no gates between thoughts; agclr has three"
        )
    found = thought_states(model, batch, [*before, *after])
    shares = torch.stack([found[place] for place in after])  # [gate thought batch channel]
    logits = torch.stack([found[place] for place in before])
    control = thought_states(model.untrained(), batch, after)
    order = shares[0].nanmean(1).mean(0).argsort()
    mean, low, high = bootstrap(shares.mean(-1))
    present = shares.isfinite()
    n_values = present.sum((2, 3))
    return ThoughtGates(
        before=logits.nanmean(2)[..., order],
        before_sd=_sd(logits, 2)[..., order],
        after=shares.nanmean(2)[..., order],
        after_sd=_sd(shares, 2)[..., order],
        mean=mean,
        low=low,
        high=high,
        sd=_sd(shares.flatten(2), 2),
        shut=(shares < SHUT).sum((2, 3)) / n_values,
        open=(shares > OPEN).sum((2, 3)) / n_values,
        untrained=torch.stack([control[place].nanmean((1, 2)) for place in after]),
        order=order,
        n=present[0, :, :, 0].sum(1),
    )


def _sd(values: Float[Tensor, "*axes"], axis: int) -> Float[Tensor, "*fewer"]:
    """Compute the standard deviation along an axis, ignoring NaN."""
    mean = values.nanmean(axis, keepdim=True)
    return (values - mean).pow(2).nanmean(axis).sqrt()
