"""When does reading the answer after loop 1 stop working, and does test accuracy rise then?

Stage-1 is the accuracy read at the answer's position after loop 1. DiscoLoop reports that on
training chains it first rises (the chains are memorised in one loop) and then collapses, as the
model starts to compose and test accuracy jumps.

The change is found by a test for a step down. The series starts at the first measurement that
reaches nine tenths of its maximum. The statistic is the largest fall of the mean over all ways to
cut the series in two, weighted by the lengths of the parts, in units of the usual change from one
measurement to the next.

Neighbouring measurements of a run are correlated, so shuffled series would not be a fair
comparison: a slow drift also falls further than they do. The p-value therefore comes from the same
statistic on random walks of the same length, which drift as far as any series whose changes are
independent of its course. Noise that forgets its past, at once or slowly (AR(1)), falls less far in
these units, so its p-value is too large rather than too small. A fall of less than a tenth is not a
collapse, however small its p-value. A steady decline of more than a tenth is one, at its middle.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.result import Result
from analyses.kit.splits import of_tests
from analyses.training.measured import Record, curves_by_split
from workbench.runs.evaluation import wilson

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.runs import Run

WALKS = 2_000
USUAL = 0.75  # share of changes, smallest first, that are usual; the rest may be the collapse's
SIGNIFICANT = 0.01
SMALLEST_CHANGE = 1e-3  # one row in a thousand
SMALLEST_FALL = 0.1  # a smaller fall in accuracy is not a collapse, however significant


@dataclass(frozen=True)
class AccuracyChange:
    """A step in a series: the index of the first value after it, its size and its p-value."""

    at: int | None
    size: float
    p_value: float


@dataclass(frozen=True, eq=False)
class StageCollapse(Result):
    """Stage-1 and final accuracy over training, by split, and where they change."""

    stage_1: Float[Tensor, "split step"]
    final: Float[Tensor, "split step"]
    low: Float[Tensor, "split step"]
    """Lower end of the 95 % Wilson interval of the final accuracy."""
    high: Float[Tensor, "split step"]
    splits: tuple[str, ...]
    steps: tuple[int, ...]
    epochs: tuple[float, ...]
    majority: dict[str, float]
    """Accuracy of the commonest answer, the floor of each split."""
    shortcut: dict[str, float]
    """Accuracy of the best guess from part of the question."""
    collapse_epoch: float | None
    """Epoch of the first measurement after Stage-1 train accuracy fell; None without a fall."""
    collapse_step: int | None
    collapse_size: float
    """Mean Stage-1 accuracy before the best cut minus the mean after it."""
    p_value: float
    rise_epoch: float | None
    """Epoch of the first measurement after test accuracy rose; None without a rise."""
    rise_p_value: float
    rise_split: str
    n: int
    """Number of rows measured in the largest split."""

    @property
    def lag(self) -> float | None:
        """Epochs from the collapse to the rise of test accuracy; negative if it came before."""
        if self.collapse_epoch is None or self.rise_epoch is None:
            return None
        return self.rise_epoch - self.collapse_epoch

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            {
                "split": split,
                "step": self.steps[j],
                "epoch": self.epochs[j],
                "stage_1": float(self.stage_1[i, j]),
                "final": float(self.final[i, j]),
                "low": float(self.low[i, j]),
                "high": float(self.high[i, j]),
            }
            for i, split in enumerate(self.splits)
            for j in range(len(self.steps))
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import CONTROL, band, colour_of, legend_line, styled

        figure = go.Figure()
        for i, split in enumerate(self.splits):
            colour = colour_of(split, i)
            low, high = self.low[i].tolist(), self.high[i].tolist()
            figure.add_trace(band(self.epochs, low, high, colour))
            for values, kind, dash in (
                (self.final, "final", "solid"),
                (self.stage_1, "Stage-1", "dot"),
            ):
                figure.add_scatter(
                    x=self.epochs,
                    y=values[i].tolist(),
                    name=split,
                    mode="lines",
                    legendgroup=split,
                    showlegend=kind == "final",
                    line={"color": colour, "dash": dash},
                    hovertemplate=f"{split}, {kind} %{{y}}, epoch %{{x:.0f}}<extra></extra>",
                )
        legend_line(figure, "after loop 1 (Stage-1)", "dot")
        legend_line(figure, "after the last loop", "solid")
        legend_line(figure, "commonest answer", "dash", CONTROL)
        legend_line(figure, "best shortcut, test splits", "dot", CONTROL)
        figure.add_hline(y=max(self.majority.values()), line_color=CONTROL, line_dash="dash")
        figure.add_hline(y=of_tests(self.shortcut), line_color=CONTROL, line_dash="dot")
        _mark(figure, self.collapse_epoch, "Stage-1 collapses", 1.02)
        _mark(figure, self.rise_epoch, f"{self.rise_split} rises", 1.14)
        figure.update_xaxes(title="epoch")
        figure.update_yaxes(title="accuracy", range=[-0.02, 1.28], dtick=0.2)
        return styled(figure, "Accuracy after loop 1 (Stage-1) and after the last", 460)

    def summary(self) -> str:
        if self.collapse_epoch is None:
            return (
                f"no collapse of Stage-1 train accuracy (largest fall {self.collapse_size:.3f}, "
                f"p={self.p_value:.3g}; a collapse falls by {SMALLEST_FALL:g} at p<{SIGNIFICANT:g})"
            )
        text = (
            f"Stage-1 train accuracy falls by {self.collapse_size:.2f} at epoch "
            f"{self.collapse_epoch:.0f} (p={self.p_value:.2g})"
        )
        if self.lag is None:
            return f"{text}; {self.rise_split} does not rise (p={self.rise_p_value:.2g})"
        return f"{text}; {self.rise_split} rises {self.lag:+.0f} epochs from there"


def _mark(figure: "go.Figure", epoch: float | None, text: str, height: float) -> None:
    """Draw a line with a label at an epoch, if there is one."""
    if epoch is not None:
        figure.add_vline(x=epoch, line_color="#000000", line_width=1)
        side = {"showarrow": False, "xanchor": "left", "yanchor": "bottom"}
        figure.add_annotation(x=epoch, y=height, text=text, **side)


@analysis(on="run", example=Example(run="history"))
def stage_collapse(
    run: "Run", *, train_split: str | None = None, test_split: str | None = None
) -> StageCollapse:
    """Measure Stage-1 and final accuracy over a run's training, and find where they change.

    Args:
        run: A run with a history.
        train_split: The split whose Stage-1 accuracy may collapse; by default train_id, or train
            where the task has no such split.
        test_split: The split whose final accuracy may rise; by default the one that runs are
            judged on.

    Raises:
        ValueError: The history is too short or lacks a split, or the model runs a single loop.
    """
    curves = curves_by_split(run.history)
    test_split = run.task.default_split if test_split is None else test_split
    if train_split is None:
        train_split = "train" if "train" in curves else "train_id"
    _check(run.name, curves, (train_split, test_split))
    records = curves[train_split]
    stage_1, final = (_series(curves, read) for read in (_stage_1, _final))
    splits = tuple(curves)
    # A split with fewer rows than `measure.n` is measured completely
    most = run.recipe.training.measure.n
    sizes = [min(most, len(run.task.split(split))) for split in splits]  # all rows, if fewer
    low, high = _intervals(final, sizes)
    fall = collapse_of(stage_1[splits.index(train_split)].tolist())
    rise = rise_of(final[splits.index(test_split)].tolist())
    epochs = tuple(float(record["epoch"]) for record in records)
    return StageCollapse(
        stage_1=stage_1,
        final=final,
        low=low,
        high=high,
        splits=splits,
        steps=tuple(record["step"] for record in records),
        epochs=epochs,
        majority={split: run.task.majority_rate(split) for split in splits},
        shortcut={split: run.task.best_shortcut(split) for split in splits},
        collapse_epoch=None if fall.at is None else epochs[fall.at],
        collapse_step=None if fall.at is None else records[fall.at]["step"],
        collapse_size=fall.size,
        p_value=fall.p_value,
        rise_epoch=None if rise.at is None else epochs[rise.at],
        rise_p_value=rise.p_value,
        rise_split=test_split,
        n=max(sizes),
    )


def _check(run: str, curves: Mapping[str, list[Record]], splits: Sequence[str]) -> None:
    if any("accuracy_by_loop" not in r for records in curves.values() for r in records[:1]):
        raise ValueError(f"{run} thinks, so that it has no Stage-1; stage_curve is of such runs")
    for split in splits:
        if split not in curves:
            raise ValueError(f"{run} measured no split {split!r}; it has {', '.join(curves)}")
    records = curves[splits[0]]
    if len(records) < 5:
        raise ValueError(f"{run} has {len(records)} measurements; a change needs at least 5")
    if len(records[0]["accuracy_by_loop"]) < 2:
        raise ValueError(f"{run} runs one loop, so that Stage-1 is its final accuracy")


def collapse_of(series: Sequence[float]) -> AccuracyChange:
    """Find the step down after a series was near its maximum; `at` is None if there is none."""
    values = np.asarray(series, dtype=float)
    start = int(np.argmax(values >= 0.9 * values.max()))
    fall = step_down(values[start:])
    real = fall.p_value < SIGNIFICANT and fall.size >= SMALLEST_FALL
    return AccuracyChange(
        start + fall.at if real and fall.at is not None else None, fall.size, fall.p_value
    )


def rise_of(series: Sequence[float]) -> AccuracyChange:
    """Find the step up of a series; `at` is None if there is none."""
    rise = step_down(-np.asarray(series, dtype=float))
    real = rise.p_value < SIGNIFICANT and rise.size >= SMALLEST_FALL
    return AccuracyChange(rise.at if real else None, rise.size, rise.p_value)


def step_down(values: np.ndarray, seed: int = 0) -> AccuracyChange:
    """Find the best cut of a series into a higher and a lower part, with its p-value."""
    if len(values) < 4 or np.ptp(values) == 0:
        return AccuracyChange(None, 0.0, 1.0)
    falls = _cut_statistics(values[None])[0]
    at = int(falls.argmax()) + 1
    size = float(values[:at].mean() - values[at:].mean())
    # On a plateau the usual change is 0, which is below the resolution of the measurement
    statistic = falls.max() / max(float(_usual_change(values[None])[0]), SMALLEST_CHANGE)
    further = int((_falls_of_walks(len(values), seed) >= statistic).sum())
    return AccuracyChange(at, size, (1 + further) / (1 + WALKS))


@lru_cache(maxsize=64)
def _falls_of_walks(length: int, seed: int) -> np.ndarray:
    """Compute the statistic of each of `WALKS` random walks."""
    rng = np.random.default_rng(seed)
    walks = rng.normal(size=(WALKS, length)).cumsum(1)
    return _cut_statistics(walks).max(1) / _usual_change(walks)


def _usual_change(rows: np.ndarray) -> np.ndarray:
    """Return the root mean square of each row's usual changes."""
    changes = np.sort(np.abs(np.diff(rows, axis=1)), axis=1)
    usual = changes[:, : max(1, int(USUAL * changes.shape[1]))]
    return np.sqrt((usual**2).mean(1))


def _cut_statistics(rows: np.ndarray) -> np.ndarray:
    """Return the standardised fall of the mean at every cut, as [row cut].

    For parts of lengths a and b it is √(ab/(a+b))·(mean_a − mean_b).
    """
    n = rows.shape[1]
    before = np.arange(1, n)
    sums = rows.cumsum(1)
    mean_before = sums[:, :-1] / before
    mean_after = (sums[:, -1:] - sums[:, :-1]) / (n - before)
    return np.sqrt(before * (n - before) / n) * (mean_before - mean_after)


def _intervals(
    shares: Float[Tensor, "split step"], sizes: Sequence[int]
) -> tuple[Float[Tensor, "split step"], Float[Tensor, "split step"]]:
    """Return the ends of the accuracies' 95 % Wilson intervals, for `sizes` rows per split."""
    rows = zip(shares.tolist(), sizes, strict=True)
    ends = torch.tensor([[wilson(round(x * n), n) for x in row] for row, n in rows])
    return ends[..., 0], ends[..., 1]


def _series(curves: Mapping[str, list[Record]], read: Callable[[Record], float]) -> Tensor:
    return torch.tensor([[read(record) for record in records] for records in curves.values()])


def _stage_1(record: Record) -> float:
    return float(record["accuracy_by_loop"][0])


def _final(record: Record) -> float:
    return float(record["accuracy"])
