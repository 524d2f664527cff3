"""Is the bridge decodable, and does its state look like the bridge's embedding?

DiscoLoop's finding is that a looped model knows the bridge after loop 1 (probability 1) while the
state's cosine with the bridge's embedding is about .3: known, and not in a usable form.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.labels import loop_labels
from analyses.result import Result
from analyses.splits import Batches, with_bridges
from analyses.spread import bootstrap
from workbench.instruments.reading import STATE, read_bridges
from workbench.models.depth import DepthModel
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MEASURES = ("probability", "cosine")


@dataclass(frozen=True, eq=False)
class BridgeAlignment(Result):
    """Mean over questions, with the ends of its 95 % bootstrap interval.

    `measure` is probability, cosine. The control reads the bridge of another row at the same place.
    """

    mean: Float[Tensor, "split measure loop hop"]
    low: Float[Tensor, "split measure loop hop"]
    high: Float[Tensor, "split measure loop hop"]
    control: Float[Tensor, "split measure loop hop"]
    splits: tuple[str, ...]
    n: tuple[int, ...]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        labels = loop_labels(self.mean.shape[2])
        rows = []
        for split, measure, loop, hop in torch.cartesian_prod(
            *(torch.arange(size) for size in self.mean.shape)
        ).tolist():
            at = (split, measure, loop, hop)
            if not self.mean[at].isfinite():
                continue
            rows.append(
                {
                    "split": self.splits[split],
                    "measure": MEASURES[measure],
                    "state": labels[loop],
                    "bridge": hop + 1,
                    "mean": float(self.mean[at]),
                    "low": float(self.low[at]),
                    "high": float(self.high[at]),
                    "shuffled_bridge": float(self.control[at]),
                    "n": self.n[split],
                }
            )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.style import CONTROL, colour_of, styled

        n_hops = self.mean.shape[3]
        titles = [
            f"{measure} of bridge {hop + 1}" if n_hops > 1 else f"{measure} of the bridge"
            for hop in range(n_hops)
            for measure in MEASURES
        ]
        figure = make_subplots(n_hops, 2, subplot_titles=titles)
        labels = loop_labels(self.mean.shape[2])
        for split, name in enumerate(self.splits):
            for hop in range(n_hops):
                for measure in range(2):
                    at = (split, measure, slice(None), hop)
                    mean, low, high = (t[at] for t in (self.mean, self.low, self.high))
                    bars = go.Bar(
                        x=labels,
                        y=mean.tolist(),
                        name=name,
                        marker_color=colour_of(name, split),
                        error_y={
                            "array": (high - mean).tolist(),
                            "arrayminus": (mean - low).tolist(),
                        },
                        legendgroup=name,
                        offsetgroup=name,
                        showlegend=not measure and not hop,
                    )
                    control = go.Scatter(
                        x=labels,
                        y=self.control[at].tolist(),
                        name="another row's bridge",
                        mode="markers",
                        marker={"color": CONTROL, "symbol": "line-ew-open", "size": 26},
                        legendgroup="control",
                        showlegend=not (measure or hop or split),
                    )
                    figure.add_traces([bars, control], rows=hop + 1, cols=measure + 1)
        figure.update_yaxes(range=[-0.1, 1.05])
        return styled(figure, "Known and aligned: the bridge where it is read", 200 + 240 * n_hops)

    def summary(self) -> str:
        parts = [
            f"{split}: P {self.mean[i, 0, 0, 0]:.3f}, cosine {self.mean[i, 1, 0, 0]:.3f}"
            for i, split in enumerate(self.splits)
        ]
        return (
            f"bridge after loop 1: {'; '.join(parts)} (another row's bridge: "
            f"P {self.control[:, 0, 0, 0].nanmean():.3f}, "
            f"cosine {self.control[:, 1, 0, 0].nanmean():.3f})"
        )


@torch.no_grad()
def bridge_alignment(
    model: DepthModel, batch: Batches, *, n_loops: int | None = None
) -> BridgeAlignment:
    """Probability of the bridge and cosine with its embedding, after each loop, by split.

    Args:
        model: The model; hooks that are open on it act.
        batch: One batch, or batches by split; splits without bridges are left out.
        n_loops: Loops to run; by default as many as it was trained with.
    """
    batches = with_bridges(batch)
    stats, controls = [], []
    for rows in batches.values():
        values, shuffled = _both(model, rows, n_loops)
        stats.append(torch.stack(bootstrap(values)))
        controls.append(shuffled.nanmean(-1))
    mean, low, high = torch.stack(stats, dim=1).cpu()
    return BridgeAlignment(
        mean,
        low,
        high,
        torch.stack(controls).cpu(),
        tuple(batches),
        tuple(map(len, batches.values())),
    )


def _both(model: DepthModel, batch: Batch, n_loops: int | None) -> tuple[Tensor, Tensor]:
    """Probability and cosine [measure loop hop batch], of the bridge and of another row's."""
    _, cache = model.run_with_cache(
        **batch.inputs, n_loops=n_loops, names_filter=STATE, logits_at=batch.read_at
    )
    states = cache[STATE]
    true = torch.stack(read_bridges(model, states, batch))
    other = torch.stack(read_bridges(model, states, shuffled_bridges(batch)))
    return true.permute(0, 1, 3, 2), other.permute(0, 1, 3, 2)


def shuffled_bridges(batch: Batch) -> Batch:
    """The same rows, each with the bridge of the row before; NaN where either has none."""
    from dataclasses import replace

    bridge = batch.bridge.roll(1, 0)
    return replace(batch, bridge=bridge.where(batch.bridge >= 0, batch.bridge))
