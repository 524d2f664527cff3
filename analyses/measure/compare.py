"""Which of several runs answers the same questions better, and is the difference more than luck?

Each run is compared with the first one, question by question: McNemar's exact test uses the
questions that one run gets right and the other wrong. For a recipe trained with several seeds, the
mean and the standard deviation over seeds are reported too.

ProsQA's split `test_swapped` repeats each test question with the other person, so that the answer
flips. A guess that ignores the person gives both questions the same answer, so it is never right on
both. A coin toss is right on both a quarter of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.asking import best_guess, numbers_of, rights, runs_beside, task_for
from analyses.kit.declare import Example, analysis
from analyses.kit.paired import changes, mcnemar, probabilities
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanThink
from workbench.runs import Run
from workbench.runs.evaluation import wilson
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Parts = dict[str, Tensor]

SWAPPED = "test_swapped"
BLIND = 0.25  # the most that a guess that ignores the person gets right on both: p·(1 − p)


@dataclass(frozen=True, eq=False)
class Compare(Result):
    """Accuracies with Wilson intervals, and differences to the first run with bootstrap intervals.

    The controls are the best guess without reasoning and, for the swapped twins, `BLIND`.
    """

    right: Bool[Tensor, "run question"]
    accuracy: Float[Tensor, " run"]
    low: Float[Tensor, " run"]
    high: Float[Tensor, " run"]
    difference: Float[Tensor, " run"]
    """Each run's accuracy minus the first run's."""
    difference_low: Float[Tensor, " run"]
    difference_high: Float[Tensor, " run"]
    p_value: Float[Tensor, " run"]
    """McNemar's exact p-value against the first run."""
    by_level: Float[Tensor, "run level"]
    by_level_low: Float[Tensor, "run level"]
    by_level_high: Float[Tensor, "run level"]
    by_level_p: Float[Tensor, "run level"]
    by_level_n: Int[Tensor, " level"]
    swapped: Float[Tensor, " run"]
    """Accuracy on the swapped twins; like the next three fields, NaN if there are no twins."""
    both: Float[Tensor, " run"]
    """Share of questions for which both the question and its twin are answered right."""
    both_low: Float[Tensor, " run"]
    both_high: Float[Tensor, " run"]
    recipe_mean: Float[Tensor, " recipe"]
    """Mean accuracy over the runs of a recipe."""
    recipe_sd: Float[Tensor, " recipe"]
    """Standard deviation over the runs of a recipe; NaN for a single run."""
    recipe_n: Int[Tensor, " recipe"]
    runs: tuple[str, ...]
    recipe_of: tuple[str, ...]
    """Name of each run's recipe."""
    recipes: tuple[str, ...]
    levels: tuple[int, ...]
    unit: str
    split: str
    guess: str
    guess_accuracy: float

    @property
    def has_twins(self) -> bool:
        """Whether the swapped twins were evaluated too."""
        return bool(self.both.isfinite().any())

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for i, name in enumerate(self.runs):
            whole = {
                "n": self.right.shape[1],
                "accuracy": float(self.accuracy[i]),
                "low": float(self.low[i]),
                "high": float(self.high[i]),
                "difference": float(self.difference[i]),
                "difference_low": float(self.difference_low[i]),
                "difference_high": float(self.difference_high[i]),
                "p_value": float(self.p_value[i]),
                "swapped": float(self.swapped[i]),
                "both": float(self.both[i]),
            }
            start = {"run": name, "recipe": self.recipe_of[i]}
            rows.append(start | {self.unit: "all"} | whole)
            for j, level in enumerate(self.levels):
                one = {
                    "n": int(self.by_level_n[j]),
                    "accuracy": float(self.by_level[i, j]),
                    "low": float(self.by_level_low[i, j]),
                    "high": float(self.by_level_high[i, j]),
                    "difference": float(self.by_level[i, j] - self.by_level[0, j]),
                    "p_value": float(self.by_level_p[i, j]),
                }
                rows.append(start | {self.unit: str(level)} | one)
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from analyses.measure.compare_figure import compare_figure

        return compare_figure(self)

    def summary(self) -> str:
        parts = []
        for i, name in enumerate(self.runs):
            part = f"{name} {self.accuracy[i]:.3f} [{self.low[i]:.3f}, {self.high[i]:.3f}]"
            if i:
                part += f" ({self.difference[i]:+.3f}, p={self.p_value[i]:.2g})"
            if self.has_twins:
                part += f", right with its twin {self.both[i]:.3f}"
            parts.append(part)
        for name, mean, sd, n in zip(
            self.recipes, self.recipe_mean, self.recipe_sd, self.recipe_n, strict=True
        ):
            if n > 1:
                parts.append(f"{name} over {n} runs {mean:.3f} ± {sd:.3f}")
        blind = f", blind at most {BLIND} with its twin" if self.has_twins else ""
        n = self.right.shape[1]
        return f"{'; '.join(parts)}; {self.guess} {self.guess_accuracy:.3f}{blind} (n={n})"


@analysis(given=("split",), on="run", example=Example(run="stages"))
@torch.no_grad()
def compare(
    run: Run,
    *,
    split: str | None = None,
    beside: Sequence[str] = (),
    rows: int | None = None,
) -> Compare:
    """Compare several runs on the first run's questions, each in the layout it was trained with.

    Args:
        run: The run that the others are compared with.
        split: Split of the questions; by default the one that the task is judged on.
        beside: Names or folders of the other runs.
        rows: Number of questions, from the start of the split; by default all.

    Raises:
        ConfigError: A run does not answer in words, or its vocabulary is not the first run's.
    """
    runs = runs_beside(run, beside)
    first = cast(WordedTask, run.task)
    split = split or first.default_split
    numbers = numbers_of(first, split, rows)
    pairs = [(cast(CanThink, one.model), task_for(one, run)) for one in runs]
    right = torch.stack([rights(model, task, split, numbers) for model, task in pairs])
    twins = None
    if split == "test" and SWAPPED in first.split_names:
        twins = torch.stack([rights(model, task, SWAPPED, numbers) for model, task in pairs])
    names = tuple(one.recipe.name for one in runs)
    encoded = first.encoded(split)
    level = torch.tensor([len(encoded[n].steps) for n in numbers])
    guess, share = best_guess(first, split)
    return Compare(
        right=right,
        **_overall(right),
        **_by_level(right, level),
        **_with_twins(right, twins),
        levels=tuple(level.unique().tolist()),
        **_by_recipe(right, names),
        recipes=tuple(dict.fromkeys(names)),
        recipe_of=names,
        runs=tuple(one.name for one in runs),
        unit=first.unit,
        split=split,
        guess=guess,
        guess_accuracy=share,
    )


def shares(right: Bool[Tensor, "run question"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return each run's share of right answers, with the ends of its Wilson interval."""
    n = right.shape[1]
    ends = [wilson(count, n) for count in right.sum(1).tolist()]
    low, high = torch.tensor(ends).unbind(-1)
    return right.float().mean(1), low, high


def _overall(right: Bool[Tensor, "run question"]) -> Parts:
    accuracy, low, high = shares(right)
    difference, difference_low, difference_high = bootstrap(right.float() - right[0].float())
    return {
        "accuracy": accuracy,
        "low": low,
        "high": high,
        "difference": difference,
        "difference_low": difference_low,
        "difference_high": difference_high,
        "p_value": probabilities([mcnemar(*changes(one, right[0])) for one in right]),
    }


def _by_level(right: Bool[Tensor, "run question"], level: Int[Tensor, " question"]) -> Parts:
    parts = [right[:, level == one] for one in level.unique()]
    accuracy, low, high = (torch.stack(ends, 1) for ends in zip(*map(shares, parts), strict=True))
    p = [[mcnemar(*changes(part[run], part[0])) for part in parts] for run in range(len(right))]
    return {
        "by_level": accuracy,
        "by_level_low": low,
        "by_level_high": high,
        "by_level_p": probabilities(p),
        "by_level_n": torch.tensor([part.shape[1] for part in parts]),
    }


def _with_twins(right: Bool[Tensor, "run question"], twins: Tensor | None) -> Parts:
    """Compute the accuracy on the twins, and on questions together with their twins."""
    if twins is None:
        none = torch.full((len(right),), torch.nan)
        return dict.fromkeys(("swapped", "both", "both_low", "both_high"), none)
    both, low, high = shares(right & twins)
    return {"swapped": shares(twins)[0], "both": both, "both_low": low, "both_high": high}


def _by_recipe(right: Bool[Tensor, "run question"], names: Sequence[str]) -> Parts:
    """Compute the mean and standard deviation of the accuracies of each recipe's runs."""
    recipes = list(dict.fromkeys(names))
    accuracy = right.double().mean(1)
    groups = [accuracy[[name == recipe for name in names]] for recipe in recipes]
    sds = [float(group.std()) if len(group) > 1 else torch.nan for group in groups]
    return {
        "recipe_mean": torch.tensor([float(group.mean()) for group in groups]),
        "recipe_sd": torch.tensor(sds),
        "recipe_n": torch.tensor([len(group) for group in groups]),
    }
