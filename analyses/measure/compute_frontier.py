"""How many loops does each difficulty need? Accuracy by number of loops and by difficulty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import level_label, loop_label
from analyses.kit.parts import in_parts, most_loops
from analyses.kit.result import Result
from analyses.kit.tidy import tidy
from analyses.kit.trained import Trained
from analyses.measure.fitted_frontier import best_once_enough, fit, resampled, solvable
from workbench.capabilities import CanLoop
from workbench.runs.evaluation import wilson
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, eq=False)
class ComputeFrontier(Result):
    """Accuracy after each loop, by difficulty, and the frontier fitted to it.

    The controls are the commonest answer of each difficulty and the best guess without reasoning.
    Cells have Wilson intervals; the frontier and the means have bootstrap intervals over questions.
    """

    accuracy: Float[Tensor, "difficulty loop"]
    low: Float[Tensor, "difficulty loop"]
    high: Float[Tensor, "difficulty loop"]
    n: Int[Tensor, " difficulty"]
    levels: Int[Tensor, " difficulty"]
    majority: Float[Tensor, " difficulty"]
    """Accuracy of the commonest answer of each difficulty, which is taken as chance."""
    shortcut: Float[Tensor, " difficulty"]
    """Accuracy of the best guess without reasoning; NaN where none is known."""
    shortcut_name: str | None
    beyond_guess: Bool[Tensor, " difficulty"]
    """Whether the best loop is above chance by more than noise and, where a shortcut is known,
    above the shortcut by more than its standard error. Only these difficulties give the slope."""
    crossing: Float[Tensor, " difficulty"]
    """Loops until accuracy is 3/4 of the way from chance to its ceiling; NaN if it never is."""
    crossing_low: Float[Tensor, " difficulty"]
    crossing_high: Float[Tensor, " difficulty"]
    slope: Interval
    """Loops that one more reasoning step costs."""
    intercept: float
    in_range: Interval
    """Mean, over the trained difficulties, of the best accuracy among loops ≥ difficulty."""
    beyond_range: Interval
    one_loop_hardest: Interval
    """Accuracy after one loop at the greatest difficulty, i.e. what needs no iteration."""
    unit: str
    trained_loops: tuple[int, int] | None
    trained_difficulty: tuple[int, int] | None

    @property
    def n_loops(self) -> int:
        """Number of loops that were run."""
        return self.accuracy.shape[1]

    def to_frame(self) -> "pd.DataFrame":
        axes = {
            self.unit: self.levels.tolist(),
            "state": [loop_label(loop) for loop in range(self.n_loops)],
        }
        by_loop = {"accuracy": self.accuracy, "low": self.low, "high": self.high}
        by_level = {
            "n": self.n,
            "majority": self.majority,
            "shortcut": self.shortcut,
            "crossing": self.crossing,
            "crossing_low": self.crossing_low,
            "crossing_high": self.crossing_high,
        }
        return tidy(by_loop | {name: value[:, None] for name, value in by_level.items()}, axes)

    def figure(self) -> "go.Figure":
        from analyses.measure.frontier_figure import frontier_figure

        return frontier_figure(self)

    def summary(self) -> str:
        solved = [
            f"{level} after {loops:.1f}"
            for level, loops, beyond in zip(
                self.levels.tolist(), self.crossing.tolist(), self.beyond_guess, strict=True
            )
            if beyond
        ]
        parts = [f"{self.unit} solved beyond guessing: {_list(solved)}"]
        if self.slope.value == self.slope.value:
            parts.append(f"{self.slope} loops for one step more")
        for name, found in (("in", self.in_range), ("beyond", self.beyond_range)):
            if found.value == found.value:
                parts.append(f"accuracy {name} the trained range {found}")
        hardest = level_label(int(self.levels[-1]), self.unit)
        parts.append(f"after one loop at {hardest} {self.one_loop_hardest}")
        if self.shortcut_name is not None:
            parts.append(f"there without reasoning {self.shortcut[-1]:.2f} ({self.shortcut_name})")
        return "; ".join(parts) + f" (n={int(self.n.sum())})"


@analysis(given=("n_loops", "trained"), on="judged")
@torch.no_grad()
def compute_frontier(
    model: CanLoop,
    batch: Batch,
    *,
    n_loops: int | None = None,
    trained: Trained | None = None,
) -> ComputeFrontier:
    """Compute the accuracy after every loop and at every difficulty of a batch.

    Args:
        model: The model; active hooks apply.
        batch: Questions of several difficulties.
        n_loops: Loops to run; by default as many as the loop embedding has rows, or else 2.5 times
            the number that the model was trained with.
        trained: What the model was trained on; without it, no trained range and no shortcut are
            drawn.
    """
    loops = most_loops(model, 2.5) if n_loops is None else n_loops
    right = right_by_loop(model, batch, loops)
    cells = _cells(right, batch)
    shown = None if trained is None else trained.task.trained_difficulty
    shortcut = None if trained is None else trained.shortcut(batch)
    none = torch.full_like(cells["majority"], torch.nan)
    return ComputeFrontier(
        **cells,
        **_fitted(right, batch, cells, shown, none if shortcut is None else shortcut.accuracy),
        shortcut=none if shortcut is None else shortcut.accuracy,
        shortcut_name=None if shortcut is None else shortcut.name,
        unit="difficulty" if trained is None else trained.task.unit,
        trained_loops=None if trained is None else trained.loops,
        trained_difficulty=shown,
    )


def _cells(right: Bool[Tensor, "loop batch"], batch: Batch) -> dict[str, Any]:
    """Compute the accuracy of each difficulty after each loop, and of its commonest answer."""
    difficulty, answer = batch.difficulty.cpu(), batch.answer.cpu()
    levels, n = difficulty.unique(return_counts=True)
    buckets = [difficulty == level for level in levels]
    ends = [
        [wilson(int(share), int(rows.sum())) for share in right[:, rows].sum(1)] for rows in buckets
    ]
    low, high = torch.tensor(ends).unbind(-1)
    return {
        "accuracy": torch.stack([right[:, rows].float().mean(1) for rows in buckets]),
        "low": low,
        "high": high,
        "n": n,
        "levels": levels,
        "majority": torch.stack([answer[rows].bincount().max() / rows.sum() for rows in buckets]),
    }


def _fitted(
    right: Bool[Tensor, "loop batch"],
    batch: Batch,
    cells: dict[str, Any],
    shown: tuple[int, int] | None,
    guess: Float[Tensor, " difficulty"],
) -> dict[str, Any]:
    """Fit the frontier and average inside and beyond the trained range, with intervals."""
    accuracy, levels, chance = cells["accuracy"], cells["levels"], cells["majority"]
    draws = resampled(right, batch.difficulty.cpu(), levels)
    solved = solvable(accuracy, chance, cells["n"])
    beyond = solved & solvable(accuracy, torch.fmax(chance, guess.to(chance)), cells["n"], 1.0)
    found, drawn = (fit(shares, chance, solved, levels) for shares in (accuracy, draws))
    line, lines = (fit(shares, chance, beyond, levels) for shares in (accuracy, draws))
    low, high = drawn.crossing.quantile(torch.tensor([0.025, 0.975]), dim=0)
    easy = torch.zeros_like(solved) if shown is None else levels <= shown[1]
    hardest = (float(cells[end][-1, 0]) for end in ("accuracy", "low", "high"))
    return {
        "beyond_guess": beyond,
        "crossing": found.crossing,
        "crossing_low": low,
        "crossing_high": high,
        "slope": _interval(line.slope, lines.slope),
        "intercept": float(line.intercept),
        "in_range": _mean_of(accuracy, draws, levels, easy),
        "beyond_range": _mean_of(accuracy, draws, levels, ~easy & (shown is not None)),
        "one_loop_hardest": Interval(*hardest),
    }


def right_by_loop(model: CanLoop, batch: Batch, n_loops: int) -> Bool[Tensor, "loop batch"]:
    """Return whether the answer after each loop is right; one forward pass gives all loops."""
    found = []
    for rows in in_parts(model, batch):
        logits = model(**rows.inputs, n_loops=n_loops, every_loop=True, logits_at=rows.read_at)
        found.append(logits.argmax(-1).cpu() == rows.answer.cpu())
    return torch.cat(found, dim=1)


def _mean_of(accuracy: Tensor, draws: Tensor, levels: Tensor, wanted: Tensor) -> Interval:
    value = best_once_enough(accuracy, levels, wanted)
    return _interval(value, best_once_enough(draws, levels, wanted))


def _interval(value: Tensor, draws: Float[Tensor, " draw"]) -> Interval:
    low, high = draws.quantile(torch.tensor([0.025, 0.975])).tolist()
    return Interval(float(value), low, high)


def _list(solved: Sequence[str]) -> str:
    """Join the descriptions of solved difficulties; `none` if there are none."""
    return f"{', '.join(solved)} loops" if solved else "none"
