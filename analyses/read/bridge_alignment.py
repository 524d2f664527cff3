"""Is the bridge decodable, and is the state there similar to the bridge's embedding?

DiscoLoop's finding is that after loop 1 a looped model decodes the bridge with probability 1, while
the state's cosine with the bridge's embedding is about .3. The bridge is there, but not in a usable
form.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import loop_labels
from analyses.kit.result import Result
from analyses.kit.splits import Batches, with_bridges
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanDecode
from workbench.instruments.reading import STATE, at_positions, read_bridges
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MEASURES = ("probability", "cosine")
ANOTHER_ROW, ALL_OTHERS = "another row's bridge", "mean of all other words"
CONTROL_LINE = {"color": "#333333", "width": 2}


@dataclass(frozen=True, eq=False)
class BridgeAlignment(Result):
    """Mean over questions, with the ends of its 95 % bootstrap interval.

    The axis `measure` holds probability and cosine. The control reads the bridge of another row at
    the same position. A single question has no other row, so its control is the mean of all other
    words.
    """

    mean: Float[Tensor, "split measure loop hop"]
    low: Float[Tensor, "split measure loop hop"]
    high: Float[Tensor, "split measure loop hop"]
    control: Float[Tensor, "split measure loop hop"]
    splits: tuple[str, ...]
    n: tuple[int, ...]
    control_name: str

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
                    "control": float(self.control[at]),
                    "n": self.n[split],
                }
            )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import styled

        lowest = float(self.low.nan_to_num().min())
        n_hops = self.mean.shape[3]
        titles = [
            f"{measure}, bridge {hop + 1}" if n_hops > 1 else measure
            for hop in range(n_hops)
            for measure in MEASURES
        ]
        figure = make_subplots(n_hops, 2, subplot_titles=titles)
        for split in range(len(self.splits)):
            for hop in range(n_hops):
                for measure in range(2):
                    self._draw(figure, split, measure, hop)
        figure.update_yaxes(range=[min(-0.02, lowest - 0.05), 1.05])
        figure.update_layout(scattermode="group", bargap=0.3, scattergap=0.3)
        return styled(figure, "The bridge where it is read: known, aligned?", 182 + 240 * n_hops)

    def _draw(self, figure: "go.Figure", split: int, measure: int, hop: int) -> None:
        """Draw the bars of one split in one panel, and the marks of their control."""
        from analyses.kit.style import colour_of

        name, at = self.splits[split], (split, measure, slice(None), hop)
        mean, low, high = (t[at] for t in (self.mean, self.low, self.high))
        error = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
        place: dict[str, Any] = {"row": hop + 1, "col": measure + 1, "offsetgroup": name}
        place["x"] = loop_labels(self.mean.shape[2])
        figure.add_bar(
            y=mean.tolist(),
            name=name,
            marker_color=colour_of(name, split),
            error_y=error if self.n[split] > 1 else None,
            legendgroup=name,
            showlegend=not measure and not hop,
            **place,
        )
        figure.add_scatter(
            y=self.control[at].tolist(),
            name=self.control_name,
            mode="markers",
            marker={"symbol": "line-ew", "size": 22, "line": CONTROL_LINE},
            legendgroup="control",
            legendrank=2_000,
            showlegend=not (measure or hop or split),
            **place,
        )

    def summary(self) -> str:
        parts = [
            f"{split}: P {self.mean[i, 0, 0, 0]:.3f}, cosine {self.mean[i, 1, 0, 0]:.3f}"
            for i, split in enumerate(self.splits)
        ]
        return (
            f"bridge after loop 1: {'; '.join(parts)} ({self.control_name}: "
            f"P {self.control[:, 0, 0, 0].nanmean():.3f}, "
            f"cosine {self.control[:, 1, 0, 0].nanmean():.3f})"
        )


@analysis(given=("n_loops",), on="every")
@torch.no_grad()
def bridge_alignment(
    model: CanDecode, batch: Batches, *, n_loops: int | None = None
) -> BridgeAlignment:
    """Compute the bridge's probability and cosine with its embedding after each loop, by split.

    Args:
        model: The model; hooks that are active on it apply.
        batch: One batch, or batches by split; splits without bridges are left out.
        n_loops: Loops to run; by default as many as the model was trained with.
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
        ALL_OTHERS if all(len(rows) == 1 for rows in batches.values()) else ANOTHER_ROW,
    )


def _both(model: CanDecode, batch: Batch, n_loops: int | None) -> tuple[Tensor, Tensor]:
    """Return probability and cosine [measure loop hop batch] of the bridge and of the control."""
    _, cache = model.run_with_cache(
        **batch.inputs, n_loops=n_loops, names_filter=STATE, logits_at=batch.read_at
    )
    states = cache[STATE]
    true = torch.stack(read_bridges(model, states, batch))
    if len(batch) > 1:
        others = replace(batch, bridge=batch.other_bridges())
        other = torch.stack(read_bridges(model, states, others))
    else:
        other = _other_words(model, states, batch)
    return true.permute(0, 1, 3, 2), other.permute(0, 1, 3, 2)


def _other_words(
    model: CanDecode, states: Float[Tensor, "loop batch pos d_model"], batch: Batch
) -> Float[Tensor, "measure loop batch hop"]:
    """Return the mean probability of, and the mean cosine with, all words except the bridge."""
    n_others = model.cfg.d_vocab - 1
    probability, cosine = read_bridges(model, states, batch)
    there = F.normalize(at_positions(states, batch.bridge_at.clamp(min=0)).float(), dim=-1)
    every = there @ F.normalize(model.W_E.float(), dim=-1).sum(0)
    return torch.stack(((1 - probability) / n_others, (every - cosine) / n_others))
