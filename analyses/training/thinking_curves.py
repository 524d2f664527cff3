"""How did training with thoughts go: accuracy, loss, gradients and gates, stage by stage?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from analyses.kit.labels import thought_label
from analyses.kit.result import Result
from analyses.training.measured import Record
from workbench.instruments.speaking import GATES

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.runs import Run

GATE_NAMES = ("read", "forget", "write")


@dataclass(frozen=True, eq=False)
class ThinkingCurves(Result):
    """History of a run that thinks; NaN where nothing was measured.

    Accuracy is that of generated answers, with as many thoughts as the stage has. The control is
    the commonest answer. Gates are means over questions and channels, on the split that was
    measured first.
    """

    accuracy: Float[Tensor, "split step"]
    loss: Float[Tensor, "split step"]
    """Cross-entropy of the data's own solution and answer, in nats per token."""
    gates: Float[Tensor, "gate step thought"]
    """Mean share that the read, forget and write gates let through; empty without gates."""
    gradient_norm: Float[Tensor, " step"]
    """Norm of the gradient with respect to all weights, before clipping."""
    gradient_norm_by_thought: Float[Tensor, "step thought"]
    """Norm of the gradient with respect to each thought."""
    splits: tuple[str, ...]
    steps: tuple[int, ...]
    epochs: tuple[float, ...]
    stages: tuple[int, ...]
    """Stage of the curriculum at each step."""
    thoughts: tuple[int, ...]
    """Thoughts per question at each step."""
    majority: float
    """Accuracy of the commonest answer, on the split that the task is judged on."""

    @property
    def begins(self) -> Iterator[tuple[int, int]]:
        """First measured step and number of every stage but the first."""
        pairs = zip(self.stages, self.stages[1:], self.steps[1:], strict=False)
        return ((step, stage) for before, stage, step in pairs if stage != before)

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for j, step in enumerate(self.steps):
            of_step = {"step": step, "epoch": self.epochs[j], "stage": self.stages[j]}
            of_step["thoughts"] = self.thoughts[j]
            measured: dict[str, float] = {"gradient_norm": float(self.gradient_norm[j])}
            for thought, norm in enumerate(self.gradient_norm_by_thought[j].tolist()):
                measured[f"gradient_norm {thought_label(thought)}"] = norm
            for gate, shares in zip(GATE_NAMES, self.gates, strict=False):
                for thought, share in enumerate(shares[j].tolist()):
                    measured[f"{gate} {thought_label(thought)}"] = share
            for i, split in enumerate(self.splits):
                values = {"accuracy": float(self.accuracy[i, j]), "loss": float(self.loss[i, j])}
                rows.append({"split": split} | of_step | values | measured)
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL, colour_of, legend_line, styled

        has_gates = len(self.gates) > 0
        titles = ["accuracy of what is said", "loss", "norm of the gradient"]
        titles += ["gates; bands: from thought to thought"] if has_gates else []
        second: list[Any] = [{}, {}] if has_gates else [{"colspan": 2}, None]
        figure = make_subplots(
            2, 2, subplot_titles=titles, specs=[[{}, {}], second], vertical_spacing=0.2
        )
        for i, split in enumerate(self.splits):
            line = {"color": colour_of(split, i)}
            lines: dict[str, Any] = {"x": self.steps, "name": split, "line": line}
            figure.add_scatter(y=self.accuracy[i].tolist(), **lines, row=1, col=1)
            figure.add_scatter(y=self.loss[i].tolist(), **lines, showlegend=False, row=1, col=2)
        self._draw_gradients(figure)
        self._draw_gates(figure)
        figure.add_hline(y=self.majority, line_color=CONTROL, line_dash="dash", row=1, col=1)
        legend_line(figure, "commonest answer", "dash", CONTROL)
        for step, stage in self.begins:
            figure.add_vline(x=step, line={"color": CONTROL, "width": 1, "dash": "dot"})
            above = {"text": f"{stage}", "yanchor": "bottom", "showarrow": False}
            figure.add_annotation(x=step, y=1.03, **above, row=1, col=1)
        if len({*self.stages}) > 1:
            legend_line(figure, "a stage begins, by its number", "dot", CONTROL, width=1)
        figure.update_xaxes(title="step", row=2)
        figure.update_yaxes(range=[-0.02, 1.15], dtick=0.25, row=1, col=1)
        figure.update_yaxes(rangemode="tozero", row=1, col=2)
        figure.update_yaxes(type="log", dtick=1, exponentformat="power", row=2, col=1)
        if has_gates:
            figure.update_yaxes(range=[0, 1], row=2, col=2)
        return styled(figure, "What training measured", height=720)

    def _draw_gradients(self, figure: "go.Figure") -> None:
        """Draw the gradient norm of all weights, and the mean of the thoughts' gradient norms."""
        from analyses.kit.style import COLOURS, INK

        at = {"row": 2, "col": 1}
        line: dict[str, Any] = {"color": INK}
        norms = self.gradient_norm.tolist()
        figure.add_scatter(x=self.steps, y=norms, name="gradient of all weights", line=line, **at)
        by_thought = self.gradient_norm_by_thought
        if bool(by_thought.isfinite().any()):
            line = {"color": COLOURS[3]}
            mean = by_thought.nanmean(1).tolist()
            name = "gradient of a thought, mean"
            figure.add_scatter(x=self.steps, y=mean, name=name, line=line, **at)

    def _draw_gates(self, figure: "go.Figure") -> None:
        """Draw each gate's mean over thoughts, in a band from its lowest thought to its highest."""
        from analyses.kit.style import COLOURS, band

        at = {"row": 2, "col": 2}
        for gate, shares in enumerate(self.gates):
            known = shares.isfinite().any(1)
            steps = [s for s, is_known in zip(self.steps, known.tolist(), strict=True) if is_known]
            there = shares[known]
            low = there.nan_to_num(float("inf")).amin(1).tolist()
            high = there.nan_to_num(float("-inf")).amax(1).tolist()
            colour = COLOURS[gate]
            figure.add_trace(band(steps, low, high, colour), **at)
            mean = there.nanmean(1).tolist()
            line = {"color": colour, "width": 3}
            figure.add_scatter(x=steps, y=mean, name=GATE_NAMES[gate], line=line, **at)

    def summary(self) -> str:
        last = ", ".join(
            f"{split} {self.accuracy[i, -1]:.3f}" for i, split in enumerate(self.splits)
        )
        return (
            f"accuracy at step {self.steps[-1]:,}, stage {self.stages[-1]} with "
            f"{self.thoughts[-1]} thoughts: {last}; commonest answer {self.majority:.3f}"
        )


def thinking_curves(run: "Run", curves: dict[str, list[Record]]) -> ThinkingCurves:
    """Collect what a run that thinks measured during training.

    Args:
        run: The run; it may still be training.
        curves: Its history by split.
    """
    rows = list(curves.values())
    first = rows[0]
    thoughts = [int(record.get("thoughts") or 0) for record in first]
    gates = [[_gate(record, place) for record in first] for place in GATES]
    has_gates = any(shares for gate in gates for shares in gate)
    norms = [record["gradient_norm_by_loop"] or [] for record in first]
    norm = [record["gradient_norm"] for record in first]
    # A step's training batch may belong to the stage before the one that is measured
    most = max([*thoughts, *map(len, norms)])
    return ThinkingCurves(
        accuracy=torch.tensor([[float(r["accuracy"]) for r in records] for records in rows]),
        loss=torch.tensor([[float(r["loss"]) for r in records] for records in rows]),
        gates=torch.stack([_padded(gate, most) for gate in gates])
        if has_gates
        else torch.zeros(0, len(first), most),
        gradient_norm=torch.tensor([float("nan") if x is None else float(x) for x in norm]),
        gradient_norm_by_thought=_padded(norms, most),
        splits=tuple(curves),
        steps=tuple(record["step"] for record in first),
        epochs=tuple(float(record["epoch"]) for record in first),
        stages=tuple(int(record.get("stage") or 0) for record in first),
        thoughts=tuple(thoughts),
        majority=run.task.majority_rate(run.task.default_split),
    )


def _gate(record: Record, place: str) -> Sequence[float]:
    """Return a gate's mean by thought; empty where it was not measured."""
    means: Sequence[float] = record["gates"].get(place, {}).get("mean", [])
    return means


def _padded(lists: Sequence[Sequence[float]], most: int) -> Float[Tensor, "step thought"]:
    """Stack lists that have one value per thought of their stage, padded with NaN."""
    rows = [torch.tensor(values, dtype=torch.float) for values in lists]
    return torch.stack([F.pad(row, (0, most - len(row)), value=torch.nan) for row in rows])
