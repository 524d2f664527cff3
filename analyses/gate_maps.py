"""What do the gates between loops let through, where?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.labels import loop_label
from analyses.result import Result
from analyses.splits import Batches, by_split
from analyses.spread import bootstrap
from workbench.models.depth import DepthModel
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

GATE = "recurrence.gate.hook_post"


@dataclass(frozen=True, eq=False)
class GateMaps(Result):
    """The gate's share after the squashing, mean over questions, by split, loop and position.

    For DiscoLoop the share is α: 0 hands the state on as it is, 1 adds the decoded token at full
    size. The control is an untrained twin: a learned gate's starting value.
    """

    mean: Float[Tensor, "split loop pos"]
    low: Float[Tensor, "split loop pos"]
    high: Float[Tensor, "split loop pos"]
    sd: Float[Tensor, "split loop pos"]
    """Standard deviation between questions."""
    untrained: Float[Tensor, "split loop pos"]
    splits: tuple[str, ...]
    n: tuple[int, ...]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for i, split in enumerate(self.splits):
            for loop in range(self.mean.shape[1]):
                for pos in range(self.mean.shape[2]):
                    at = (i, loop, pos)
                    if self.mean[at].isfinite():
                        rows.append(
                            {
                                "split": split,
                                "state": loop_label(loop),
                                "position": pos,
                                "mean": float(self.mean[at]),
                                "low": float(self.low[at]),
                                "high": float(self.high[at]),
                                "sd": float(self.sd[at]),
                                "untrained": float(self.untrained[at]),
                                "n": self.n[i],
                            }
                        )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.style import styled

        n_columns = len(self.splits) + 1
        titles = [*self.splits, "untrained twin"]
        figure = make_subplots(1, n_columns, subplot_titles=titles, shared_yaxes=True)
        for column, values in enumerate([*self.mean, self.untrained[0]]):
            heat = go.Heatmap(
                z=values.tolist(),
                x=[str(pos) for pos in range(values.shape[1])],
                y=[loop_label(loop) for loop in range(values.shape[0])],
                texttemplate="%{z:.2f}",
                coloraxis="coloraxis",
                zhoverformat=".3f",
            )
            figure.add_trace(heat, row=1, col=column + 1)
        top = max(1.0, float(self.mean.nan_to_num().max()))
        figure.update_yaxes(autorange="reversed")
        figure.update_xaxes(type="category", title="position")
        figure.update_layout(
            coloraxis={"colorscale": "Viridis", "cmin": 0, "cmax": top, "colorbar_title": "α"}
        )
        return styled(figure, "Share of the decoded token that each loop adds", height=360)

    def summary(self) -> str:
        parts = [
            f"{split}: α {self.mean[i].nanmean():.3f} ± {self.sd[i].nanmean():.3f}"
            for i, split in enumerate(self.splits)
        ]
        return (
            f"{'; '.join(parts)} (mean ± sd over questions; untrained "
            f"{self.untrained.nanmean():.3f})"
        )


@torch.no_grad()
def gate_maps(model: DepthModel, batch: Batches, *, n_loops: int | None = None) -> GateMaps:
    """The gate between loops over loop and position, by split.

    Args:
        model: A model with a gate; hooks that are open on it act first.
        batch: One batch, or batches by split.
        n_loops: Loops to run; by default as many as it was trained with.

    Raises:
        ValueError: The family has no gate, or there is one loop only.
    """
    if GATE not in model.hook_dict:
        raise ValueError(f"family {model.cfg.family} has no gate between loops; discoloop has")
    if (n_loops or model.n_loops) < 2:
        raise ValueError("a gate acts between loops; this model runs one loop")
    batches = by_split(batch)
    width = max(rows.tokens.shape[1] for rows in batches.values())
    twin = model.untrained()
    stats, spreads, untrained = [], [], []
    for rows in batches.values():
        gate = _gate(model, rows, n_loops, width)
        stats.append(torch.stack(bootstrap(gate)))
        spreads.append(_sd(gate))
        untrained.append(_gate(twin, rows, n_loops, width).nanmean(-1))
    mean, low, high = torch.stack(stats, dim=1).cpu()
    return GateMaps(
        mean,
        low,
        high,
        torch.stack(spreads).cpu(),
        torch.stack(untrained).cpu(),
        tuple(batches),
        tuple(map(len, batches.values())),
    )


def _gate(
    model: DepthModel, batch: Batch, n_loops: int | None, width: int
) -> Float[Tensor, "loop pos batch"]:
    """The gate's share at every real position; NaN at padding and beyond the batch's width."""
    _, cache = model.run_with_cache(**batch.inputs, n_loops=n_loops, names_filter=GATE)
    share = cache[GATE].mean(-1)  # [loop batch pos]
    share = share.masked_fill(batch.is_pad, torch.nan).permute(0, 2, 1)
    spare = share.new_full((share.shape[0], width - share.shape[1], share.shape[2]), torch.nan)
    return torch.cat((share, spare), dim=1)


def _sd(values: Float[Tensor, "loop pos batch"]) -> Float[Tensor, "loop pos"]:
    mean = values.nanmean(-1, keepdim=True)
    return (values - mean).pow(2).nanmean(-1).sqrt()
