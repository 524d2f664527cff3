"""What do the recurrence's gates let through, by loop, position and channel?

For thought models the result is by thought and channel; see analyses/read/thought_gates.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import loop_label, position_labels
from analyses.kit.parts import in_parts
from analyses.kit.result import Result
from analyses.kit.splits import Batches, by_split
from analyses.kit.spread import bootstrap
from analyses.read.node_groups import Groups
from analyses.read.thought_gates import ThoughtGates, thought_gates
from workbench.capabilities import CanLoop, CanRecord
from workbench.kinds import LOOPS, depth_model, thought_model, worded_batch
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

GATE = "recurrence.gate.hook_post"
HALT = "recurrence.halt.hook_post"
SHUT, OPEN = 0.1, 0.9  # gate values below or above these count as saturated


@dataclass(frozen=True, eq=False)
class GateMaps(Result):
    """Gate values after the squashing function, mean over questions, by split, loop and position.

    For DiscoLoop the value is α: 0 passes the state on unchanged, 1 adds the decoded token at full
    size. For a depth-recurrent model it is z, the share of each channel that a loop replaces. For a
    model that halts it is the probability of stopping. The nodes of a graph are grouped by their
    role in the question. The control is an untrained twin, which shows a learned gate's initial
    value.
    """

    mean: Float[Tensor, "split loop pos"]
    low: Float[Tensor, "split loop pos"]
    high: Float[Tensor, "split loop pos"]
    sd: Float[Tensor, "split loop pos"]
    """Standard deviation between questions."""
    untrained: Float[Tensor, "split loop pos"]
    overall: Float[Tensor, "split loop"]
    """Mean over questions, positions and channels."""
    overall_sd: Float[Tensor, "split loop"]
    """Standard deviation over questions, positions and channels together."""
    shut: Float[Tensor, "split loop"]
    """Share of all these values that is below .1."""
    open: Float[Tensor, "split loop"]
    """Share of all these values that is above .9."""
    channel: Float[Tensor, "split loop channel"]
    """Mean over questions and positions; channels are sorted by the first split's mean."""
    splits: tuple[str, ...]
    n: tuple[int, ...]
    places: tuple[str, ...]
    """Label of each position."""
    axis: str
    symbol: str

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for i, split in enumerate(self.splits):
            for loop in range(self.mean.shape[1]):
                for pos, place in enumerate(self.places):
                    at = (i, loop, pos)
                    if self.mean[at].isfinite():
                        rows.append(
                            {
                                "split": split,
                                "state": loop_label(loop),
                                "position": place,
                                "mean": float(self.mean[at]),
                                "low": float(self.low[at]),
                                "high": float(self.high[at]),
                                "sd": float(self.sd[at]),
                                "untrained": float(self.untrained[at]),
                                "loop_mean": float(self.overall[at[:2]]),
                                "loop_sd": float(self.overall_sd[at[:2]]),
                                "shut": float(self.shut[at[:2]]),
                                "open": float(self.open[at[:2]]),
                                "n": self.n[i],
                            }
                        )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from analyses.read.gate_figure import channel_figure, position_figure

        return position_figure(self) if self.channel.shape[2] == 1 else channel_figure(self)

    def summary(self) -> str:
        if self.channel.shape[2] == 1:
            parts = [
                f"{split}: {self.symbol} {self.mean[i].nanmean():.3f} ± {self.sd[i].nanmean():.3f}"
                for i, split in enumerate(self.splits)
            ]
            of = "mean ± sd over questions"
        else:
            parts = [
                f"{split}: {self.symbol} {self.overall[i, 0]:.3f} ± {self.overall_sd[i, 0]:.3f} in "
                f"loop 1, {self.overall[i, -1]:.3f} ± {self.overall_sd[i, -1]:.3f} in loop "
                f"{self.overall.shape[1]}, there {self.shut[i, -1]:.0%} below {SHUT} and "
                f"{self.open[i, -1]:.0%} above {OPEN}"
                for i, split in enumerate(self.splits)
            ]
            of = "mean ± sd over questions, positions and channels"
        return f"{'; '.join(parts)} ({of}; untrained {self.untrained.nanmean():.3f})"


@analysis(given=("n_loops",), on="every")
def gate_maps(
    model: CanRecord, batch: Batches, *, n_loops: int | None = None
) -> GateMaps | ThoughtGates:
    """Measure the gate by loop, position, channel and split; for thought models, by thought.

    Args:
        model: A model with a gate, or one that halts; hooks that are active on it apply first.
        batch: One batch, or batches by split; a thought model takes one batch only.
        n_loops: Loops to run; by default as many as the model was trained with.

    Raises:
        ValueError: The family has no gate, or the gate never acts: a gate between loops with only
            one loop, or a gate between thoughts without thoughts.
    """
    if model.kind is LOOPS:
        return _by_loop(depth_model(model), batch, n_loops)
    if isinstance(batch, Mapping):
        raise ValueError("the gates of a model that thinks are shown for one batch of questions")
    return thought_gates(thought_model(model), worded_batch(batch))


@torch.no_grad()
def _by_loop(model: CanLoop, batch: Batches, n_loops: int | None) -> GateMaps:
    """Measure the gate of a looped model by loop, position and channel."""
    place = _gate_place(model, model.n_loops if n_loops is None else n_loops)
    batches = by_split(batch)
    groups = Groups.of(batches.values())
    twin = model.untrained()
    found = [_shares(model, rows, n_loops, place, groups) for rows in batches.values()]
    control = [_shares(twin, rows, n_loops, place, groups) for rows in batches.values()]
    mean, low, high = torch.stack([torch.stack(bootstrap(f.by_group)) for f in found], dim=1)
    order = found[0].channel.mean(0).argsort()
    return GateMaps(
        mean=mean,
        low=low,
        high=high,
        sd=torch.stack([_sd(f.by_group) for f in found]),
        untrained=torch.stack([c.by_group.nanmean(-1) for c in control]),
        overall=torch.stack([f.channel.mean(1) for f in found]),
        overall_sd=torch.stack([f.sd for f in found]),
        shut=torch.stack([f.shut for f in found]),
        open=torch.stack([f.open for f in found]),
        channel=torch.stack([f.channel[:, order] for f in found]),
        splits=tuple(batches),
        n=tuple(map(len, batches.values())),
        places=_places(model, batches, groups),
        axis=groups.axis,
        symbol="stop" if place == HALT else "z" if place not in model.between_places else "α",
    )


def _places(model: CanLoop, batches: dict[str, Batch], groups: Groups) -> tuple[str, ...]:
    """Return the labels of the positions: the words of a single question, else the groups."""
    rows = next(iter(batches.values()))
    if groups.farthest is not None or len(batches) > 1 or len(rows) > 1 or not model.tokenizer:
        return groups.labels
    return tuple(position_labels(model.to_str_tokens(rows.tokens[0])))


def _gate_place(model: CanLoop, n_loops: int) -> str:
    """Return the place of the model's gate.

    Raises:
        ValueError: The model has no gate, or the gate would not act in a single loop.
    """
    place = next((place for place in (GATE, HALT) if place in model.hook_dict), None)
    if place is None:
        raise ValueError(
            f"family {model.cfg.family} has no gate between loops; discoloop has, depth_recurrent "
            "has one in every loop, and universal with halting=act stops by one"
        )
    if place in model.between_places and n_loops < 2:
        raise ValueError("a gate acts between loops; this model runs one loop")
    return place


@dataclass(frozen=True, eq=False)
class _Shares:
    by_group: Float[Tensor, "loop group batch"]
    channel: Float[Tensor, "loop channel"]
    sd: Float[Tensor, " loop"]
    shut: Float[Tensor, " loop"]
    open: Float[Tensor, " loop"]


def _shares(
    model: CanLoop, batch: Batch, n_loops: int | None, place: str, groups: Groups
) -> _Shares:
    """Reduce the gate's values at all non-padding positions, part by part to save memory."""
    by_group, sums = [], []
    for rows in in_parts(model, batch, 256):
        _, cache = model.run_with_cache(**rows.inputs, n_loops=n_loops, names_filter=place)
        share = cache[place].float()  # [loop batch pos channel]
        by_group.append(groups.mean(share.mean(-1), rows).cpu())
        real = share[:, ~rows.is_pad].double()  # [loop position channel]
        of_all = [real, real.pow(2), (real < SHUT).double(), (real > OPEN).double()]
        sums.append(torch.stack([values.sum(1) for values in of_all]).cpu())
    n_places = int((~batch.is_pad).sum())
    total = torch.stack(sums).sum(0) / n_places  # [statistic loop channel]
    mean, square, shut, opened = total.mean(-1)
    sd = (square - mean.pow(2)).clamp(min=0).sqrt()
    sums_of = (total[0], sd, shut, opened)
    return _Shares(torch.cat(by_group, dim=2), *(values.float() for values in sums_of))


def _sd(values: Float[Tensor, "loop pos batch"]) -> Float[Tensor, "loop pos"]:
    mean = values.nanmean(-1, keepdim=True)
    return (values - mean).pow(2).nanmean(-1).sqrt()
