"""How did accuracy, gradients and the bridge develop in training, by split and by loop?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import loop_labels
from analyses.kit.result import Result
from analyses.kit.splits import of_tests
from analyses.training.measured import Record, curves_by_split
from analyses.training.thinking_curves import ThinkingCurves, thinking_curves
from workbench.kinds import THOUGHTS

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.runs import Run

DASHES = ("solid", "dot", "dash", "dashdot", "longdash", "longdashdot")
BRIDGE = {
    "bridge_probability": "probability of the bridge",
    "bridge_cosine": "cosine of state and bridge",
}


@dataclass(frozen=True, eq=False)
class TrainingCurves(Result):
    """History of a run; NaN where nothing was measured. The control is the commonest answer."""

    accuracy: Float[Tensor, "split step"]
    loss: Float[Tensor, "split step"]
    bridge_probability: Float[Tensor, "split step loop"]
    bridge_cosine: Float[Tensor, "split step loop"]
    gradient_norm: Float[Tensor, " step"]
    """Norm of the gradient with respect to all weights, before clipping."""
    gradient_norm_by_loop: Float[Tensor, "step loop"]
    """Norm of the gradient with respect to the state after each loop."""
    splits: tuple[str, ...]
    steps: tuple[int, ...]
    epochs: tuple[float, ...]
    majority: dict[str, float]
    shortcut: dict[str, float]
    """Accuracy of the best guess from part of the question."""

    @property
    def has_bridges(self) -> bool:
        """Whether any split has bridges."""
        return bool(self.bridge_probability.isfinite().any())

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        labels = loop_labels(self.bridge_probability.shape[2])
        rows: list[dict[str, Any]] = []
        for j, step in enumerate(self.steps):
            for i, split in enumerate(self.splits):
                row = {"split": split, "step": step, "epoch": self.epochs[j]}
                row |= {
                    "accuracy": float(self.accuracy[i, j]),
                    "loss": float(self.loss[i, j]),
                    "gradient_norm": float(self.gradient_norm[j]),
                }
                for loop, label in enumerate(labels):
                    row[f"bridge_probability {label}"] = float(self.bridge_probability[i, j, loop])
                    row[f"bridge_cosine {label}"] = float(self.bridge_cosine[i, j, loop])
                    row[f"gradient_norm {label}"] = float(self.gradient_norm_by_loop[j, loop])
                rows.append(row)
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL, colour_of, legend_line, styled

        titles = ["accuracy", "norm of the gradient", *BRIDGE.values()]
        n_rows = 2 if self.has_bridges else 1
        figure = make_subplots(
            n_rows, 2, subplot_titles=titles[: 2 * n_rows], vertical_spacing=0.16
        )
        for i, split in enumerate(self.splits):
            line = {"color": colour_of(split, i)}
            values = self.accuracy[i].tolist()
            figure.add_scatter(x=self.steps, y=values, name=split, line=line, row=1, col=1)
            if self.has_bridges:
                self._draw_bridges(figure, i, line)
        figure.add_hline(
            y=max(self.majority.values()), line_color=CONTROL, line_dash="dash", row=1, col=1
        )
        figure.add_hline(
            y=of_tests(self.shortcut), line_color=CONTROL, line_dash="dot", row=1, col=1
        )
        self._draw_gradients(figure)
        for loop, label in enumerate(loop_labels(self.bridge_probability.shape[2])):
            legend_line(figure, label, DASHES[loop % len(DASHES)])
        legend_line(figure, "commonest answer", "dash", CONTROL)
        legend_line(figure, "best shortcut, test splits", "dot", CONTROL)
        figure.update_traces(mode="lines")
        figure.update_xaxes(title="step", row=n_rows)
        figure.update_yaxes(type="log", dtick=1, exponentformat="power", row=1, col=2)
        figure.update_yaxes(range=[-0.02, 1.05], row=1, col=1)
        return styled(figure, "What training measured", height=190 + 260 * n_rows)

    def _draw_bridges(self, figure: "go.Figure", i: int, line: Mapping[str, str]) -> None:
        for column, (field, title) in enumerate(BRIDGE.items()):
            values = getattr(self, field)[i]  # [step loop]
            for loop, label in enumerate(loop_labels(values.shape[1])):
                if not values[:, loop].isfinite().any():
                    continue
                figure.add_scatter(
                    x=self.steps,
                    y=values[:, loop].tolist(),
                    name=f"{self.splits[i]}, {title} {label}",
                    line=dict(line) | {"dash": DASHES[loop % len(DASHES)]},
                    showlegend=False,
                    row=2,
                    col=column + 1,
                )

    def _draw_gradients(self, figure: "go.Figure") -> None:
        """Draw the gradient norm of all weights, and that of the state after each loop (dashes)."""
        from analyses.kit.style import COLOURS, INK

        for loop, label in enumerate(loop_labels(self.gradient_norm_by_loop.shape[1])):
            figure.add_scatter(
                x=self.steps,
                y=self.gradient_norm_by_loop[:, loop].tolist(),
                name="gradient of the state",
                legendgroup="state",
                showlegend=not loop,
                line={"color": COLOURS[3], "dash": DASHES[loop % len(DASHES)]},
                hovertemplate=f"%{{y}} {label}, step %{{x}}<extra></extra>",
                row=1,
                col=2,
            )
        norms, line = self.gradient_norm.tolist(), {"color": INK, "width": 2}
        name = "gradient of all weights"
        figure.add_scatter(x=self.steps, y=norms, name=name, line=line, row=1, col=2)

    def summary(self) -> str:
        last = ", ".join(
            f"{split} {self.accuracy[i, -1]:.3f}" for i, split in enumerate(self.splits)
        )
        return f"accuracy at step {self.steps[-1]:,}: {last}"


@analysis(on="run")
def training_curves(run: "Run") -> TrainingCurves | ThinkingCurves:
    """Collect what a run measured during training; with stages and gates if it thinks.

    Args:
        run: A run with a history; it may still be training.

    Raises:
        ValueError: Nothing has been measured yet.
    """
    curves = curves_by_split(run.history)
    if not curves:
        raise ValueError(f"{run.name} has measured nothing yet")
    if run.task.kind is THOUGHTS:
        return thinking_curves(run, curves)
    rows = list(curves.values())
    n_loops = len(rows[0][0]["accuracy_by_loop"])

    def by_loop(key: str, records: Sequence[Record]) -> list[list[float]]:
        return [_known(record[key], n_loops) for record in records]

    def of_splits(key: str) -> Tensor:
        return torch.tensor([by_loop(key, records) for records in rows])

    return TrainingCurves(
        accuracy=torch.tensor([[float(r["accuracy"]) for r in records] for records in rows]),
        loss=torch.tensor([[float(r["loss"]) for r in records] for records in rows]),
        bridge_probability=of_splits("bridge_probability_by_loop"),
        bridge_cosine=of_splits("bridge_cosine_by_loop"),
        gradient_norm=torch.tensor([_known(r["gradient_norm"], 1)[0] for r in rows[0]]),
        gradient_norm_by_loop=torch.tensor(by_loop("gradient_norm_by_loop", rows[0])),
        splits=tuple(curves),
        steps=tuple(record["step"] for record in rows[0]),
        epochs=tuple(float(record["epoch"]) for record in rows[0]),
        majority={split: run.task.majority_rate(split) for split in curves},
        shortcut={split: run.task.best_shortcut(split) for split in curves},
    )


def _known(value: float | Sequence[float] | None, n: int) -> list[float]:
    """Return a value or list of a history record as a list; NaN where there is none.

    A step's training batch may have run fewer loops than the measurement; its list is then shorter.
    """
    if not isinstance(value, Sequence):
        return [float("nan")] * n if value is None else [float(value)]
    return [*map(float, value), *[float("nan")] * (n - len(value))]
