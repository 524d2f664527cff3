"""Does moving the bridge's state towards its embedding make the second hop work?

The edit acts between loops, at the position where the bridge is read: H ← (1−α)H + α·s·W[b], where
b is the token that H itself decodes to. It needs no training and no label. DiscoLoop's argument
depends on the answer: a looped model computes the bridge, but not in the form that it needs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.result import Result
from analyses.kit.splits import Batches, with_bridges
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanDecode
from workbench.edits import Realign, edit_hooks
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Target = Literal["decoded", "phi", "bridge", "shuffled"]
TARGETS: tuple[Target, ...] = ("decoded", "phi", "bridge", "shuffled")
NAMES = {
    "decoded": "decoded token",
    "phi": "Φ of the state",
    "bridge": "true bridge (oracle)",
    "shuffled": "another row's bridge (control)",
}
DASHES = {"decoded": "solid", "phi": "dash", "bridge": "dot", "shuffled": "longdash"}
CONTROL_DASH = DASHES["shuffled"]
ALPHAS = tuple(step / 10 for step in range(11))


@dataclass(frozen=True, eq=False)
class Realignment(Result):
    """Accuracy by split, target and α, with the ends of its 95 % bootstrap interval."""

    accuracy: Float[Tensor, "split target alpha"]
    low: Float[Tensor, "split target alpha"]
    high: Float[Tensor, "split target alpha"]
    splits: tuple[str, ...]
    alphas: tuple[float, ...]
    scale: str
    where: str
    """Which states were moved."""
    n: tuple[int, ...]

    @property
    def gain(self) -> Float[Tensor, " split"]:
        """Best accuracy over α minus the accuracy at the first α, for the decoded token."""
        decoded = self.accuracy[:, 0]
        return decoded.amax(-1) - decoded[:, 0]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            {
                "split": split,
                "target": target,
                "alpha": alpha,
                "accuracy": float(self.accuracy[i, j, k]),
                "low": float(self.low[i, j, k]),
                "high": float(self.high[i, j, k]),
                "n": self.n[i],
            }
            for i, split in enumerate(self.splits)
            for j, target in enumerate(TARGETS)
            for k, alpha in enumerate(self.alphas)
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL, INK, band, colour_of, legend_line, styled

        figure = make_subplots(1, len(self.splits), subplot_titles=self.splits, shared_yaxes=True)
        for i, split in enumerate(self.splits):
            for j, target in enumerate(TARGETS):
                colour = CONTROL if target == "shuffled" else colour_of(split, i)
                line = go.Scatter(
                    x=self.alphas,
                    y=self.accuracy[i, j].tolist(),
                    name=NAMES[target],
                    mode="lines+markers",
                    line={"color": colour, "dash": DASHES[target]},
                    showlegend=False,
                )
                low, high = self.low[i, j].tolist(), self.high[i, j].tolist()
                figure.add_traces([line, band(self.alphas, low, high, colour)], rows=1, cols=i + 1)
        for target in TARGETS:
            colour = CONTROL if target == "shuffled" else INK
            legend_line(figure, NAMES[target], DASHES[target], colour)
        figure.update_xaxes(title="α")
        figure.update_yaxes(range=[0, 1.02])
        figure.update_yaxes(title="accuracy", col=1)
        return styled(figure, f"Realigning between loops, no training: {self.where}")

    def summary(self) -> str:
        parts = []
        for i, split in enumerate(self.splits):
            decoded = self.accuracy[i, 0]
            best = int(decoded.argmax())
            control = self.accuracy[i, 3, best]
            parts.append(
                f"{split}: {decoded[0]:.3f} → {decoded[best]:.3f} at α={self.alphas[best]:g} "
                f"(control {control:.3f}, oracle {self.accuracy[i, 2, best]:.3f})"
            )
        return "; ".join(parts)


@analysis(given=("n_loops",), on="every")
@torch.no_grad()
def realignment(
    model: CanDecode,
    batch: Batches,
    *,
    n_loops: int | None = None,
    alphas: Sequence[float] = ALPHAS,
    scale: Literal["rms", "state"] = "rms",
    where: Literal["bridge", "bridge and answer"] = "bridge",
) -> Realignment:
    """Measure accuracy under realignment by α and split.

    Args:
        model: A model with at least two loops; hooks that are active on it apply first.
        batch: One batch, or batches by split; splits without bridges are left out.
        n_loops: Loops to run; by default as many as the model was trained with.
        alphas: Shares of the embedding; 0, which leaves the state unchanged, is always added.
        scale: The norm of the embedding: √d_model (rms) or the norm of the state (state).
        where: Which states move: only those of the bridges, or also the state that the answer is
            read from. The latter moves towards its own decoded embedding, whatever the bridge's
            target is.

    Raises:
        ValueError: There is only one loop, an α is not finite, or a batch has only one row, so
            there is no other row's bridge.
    """
    if (n_loops or model.n_loops) < 2:
        raise ValueError("realignment acts between loops; this model runs one loop")
    if not all(math.isfinite(alpha) for alpha in alphas):
        raise ValueError(f"alphas={list(alphas)} must be numbers")
    alphas = sorted({0.0, *alphas})
    batches = with_bridges(batch)
    if any(len(rows) == 1 for rows in batches.values()):
        raise ValueError("the control takes another row's bridge, so give at least two questions")

    def right(rows: Batch, target: Target) -> Bool[Tensor, "alpha batch"]:
        edits = [_edits(alpha, scale, target, where) for alpha in alphas]
        return torch.stack([_right(model, rows, n_loops, made) for made in edits])

    stats = []
    for rows in batches.values():
        every = torch.stack([right(rows, target) for target in TARGETS])  # [target alpha batch]
        stats.append(torch.stack(bootstrap(every.float())))
    accuracy, low, high = torch.stack(stats, dim=1).cpu()
    n = tuple(map(len, batches.values()))
    return Realignment(accuracy, low, high, tuple(batches), tuple(alphas), scale, where, n)


def _edits(
    alpha: float, scale: Literal["rms", "state"], target: Target, where: str
) -> list[Realign]:
    bridge = Realign(alpha=alpha, scale=scale, target=target)
    if where == "bridge":
        return [bridge]
    itself: Target = "phi" if target == "phi" else "decoded"
    return [bridge, Realign(alpha=alpha, scale=scale, target=itself, positions="answer")]


def _right(
    model: CanDecode, batch: Batch, n_loops: int | None, edits: Sequence[Realign]
) -> Bool[Tensor, " batch"]:
    with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
        logits = model(**batch.inputs, n_loops=n_loops, logits_at=batch.read_at)
    return logits.argmax(-1) == batch.answer
