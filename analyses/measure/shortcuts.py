"""How far can a task be solved without reasoning?

A task defines local features: numbers that can be computed from a question without reasoning.
Guesses from these features are fitted on the training split and evaluated on another split, by
difficulty. One guess uses each feature alone (the commonest answer for each of its values), and one
uses all features together (boosted trees). What a model gets right beyond these guesses, it did not
get in this way. What the guesses get right, a model may have got in the same way. The control is
the commonest answer.

Where a task has a version with matched controls, both versions are shown. If matching succeeded, no
guess from local features is above chance there. Graphs and Boolean expressions are matched at every
difficulty. Kinship stories are matched from depth 3: at depth 2 the facts about the two people in
the question are the whole chain, so that a local feature is the reasoning, and guessing from it is
not a shortcut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.labels import level_label
from analyses.kit.result import Result
from workbench.runs import Run
from workbench.runs.evaluation import wilson
from workbench.settings.config import ConfigError
from workbench.tasks import Task
from workbench.tasks.reachability.rules import Rule, fit_rule

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MAJORITY, ALL = "commonest answer", "all features, boosted trees"
FIT = "train"  # the split that guesses are fitted on

Features = Mapping[str, np.ndarray]
Right = dict[str, np.ndarray]  # guess -> which rows it gets right
Guess = Callable[[Features], Any]  # maps the features of rows to answers


@dataclass(frozen=True, eq=False)
class Shortcuts(Result):
    """Accuracy of guesses by difficulty, with the ends of 95 % Wilson intervals."""

    accuracy: Float[Tensor, "version guess difficulty"]
    low: Float[Tensor, "version guess difficulty"]
    high: Float[Tensor, "version guess difficulty"]
    n: Int[Tensor, "version difficulty"]
    overall: Float[Tensor, "version guess"]
    """Accuracy on all rows of the split."""
    fitted: Float[Tensor, "version guess"]
    """Accuracy on the rows that the guess was fitted on."""
    versions: tuple[str, ...]
    guesses: tuple[str, ...]
    difficulties: tuple[int, ...]
    trained: tuple[int, int]
    """Least and greatest difficulty of the rows that guesses were fitted on."""
    unit: str
    split: str
    left_out: tuple[str, ...] = ()
    """Versions that cannot be built at the task's sizes, each with the reason."""

    def best_feature(self, version: int) -> int:
        """Return the index of the one-feature guess that fits the training rows best."""
        alone = [i for i, name in enumerate(self.guesses) if name not in (MAJORITY, ALL)]
        return alone[int(self.fitted[version, alone].argmax())]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            {
                "version": version,
                "guess": guess,
                self.unit: difficulty,
                "accuracy": float(self.accuracy[i, j, k]),
                "low": float(self.low[i, j, k]),
                "high": float(self.high[i, j, k]),
                "n": int(self.n[i, k]),
            }
            for i, version in enumerate(self.versions)
            for j, guess in enumerate(self.guesses)
            for k, difficulty in enumerate(self.difficulties)
        )

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import styled

        figure = make_subplots(
            1, len(self.versions), subplot_titles=self.versions, shared_yaxes=True
        )
        for version in range(len(self.versions)):
            self._draw(figure, version)
        figure.update_xaxes(title=self.unit, tickvals=self.difficulties)
        figure.update_yaxes(range=[-0.02, 1.05])
        figure.update_yaxes(title="accuracy", col=1)
        title = f"{self.split} answered without reasoning; shaded: where guesses are fitted"
        return styled(figure, title, height=480)

    def _draw(self, figure: "go.Figure", version: int) -> None:
        """Draw one version's panel: each feature, the best one, all together, and the control."""
        from analyses.kit.style import COLOURS, CONTROL, INK, band

        best = self.best_feature(version)
        shown: dict[int, tuple[str, dict[str, Any]]] = {
            j: ("one feature", {"color": "#D0D0D0", "width": 1})
            for j, guess in enumerate(self.guesses)
            if j != best and guess not in (MAJORITY, ALL)
        }
        shown[best] = ("best feature in training", {"color": COLOURS[1]})
        shown[self.guesses.index(ALL)] = (ALL, {"color": COLOURS[0]})
        shown[self.guesses.index(MAJORITY)] = (MAJORITY, {"color": CONTROL, "dash": "dash"})
        place: dict[str, Any] = {"row": 1, "col": version + 1}
        levels, named = [float(level) for level in self.difficulties], set[str]()
        for j, (name, line) in shown.items():
            if name in ("best feature in training", ALL):
                low, high = (ends[version, j].tolist() for ends in (self.low, self.high))
                figure.add_trace(band(levels, low, high, line["color"]), **place)
            figure.add_scatter(
                x=levels,
                y=self.accuracy[version, j].tolist(),
                name=name,
                mode="lines" if name == "one feature" else "lines+markers",
                line=line,
                legendgroup=name,
                showlegend=not version and name not in named,
                hovertemplate=f"{self.guesses[j]} %{{y}}, {self.unit} %{{x}}<extra></extra>",
                **place,
            )
            named.add(name)
        figure.add_vrect(*self.trained, fillcolor=INK, opacity=0.06, line_width=0, **place)

    def summary(self) -> str:
        parts = []
        for i, version in enumerate(self.versions):
            best = self.best_feature(i)
            every, best_share, floor = (
                f"{float(self.overall[i, j]):.3f}"
                for j in (self.guesses.index(ALL), best, self.guesses.index(MAJORITY))
            )
            parts.append(
                f"{version}: boosted trees on {len(self.guesses) - 2} features {every}, best "
                f"feature ({self.guesses[best]}) {best_share}, commonest answer {floor}; trees "
                f"above it {self._where_above(i)}"
            )
        parts += [f"without {reason}" for reason in self.left_out]
        return f"without reasoning on {self.split}, {'; '.join(parts)}"

    def _where_above(self, version: int) -> str:
        """Name the difficulties where the trees' whole interval is above the commonest answer."""
        trees, floor = self.guesses.index(ALL), self.guesses.index(MAJORITY)
        above = self.low[version, trees] > self.accuracy[version, floor]
        if bool(above.all()):
            return "everywhere"
        at = [
            level_label(d, self.unit)
            for d, is_above in zip(self.difficulties, above, strict=True)
            if is_above
        ]
        return f"at {', '.join(at)}" if at else "nowhere"


@analysis(given=("split",), on="run", example=Example(run="graphs"))
def shortcuts(run: Run | Task, *, split: str | None = None) -> Shortcuts:
    """Measure how often guesses from local features are right, in every version of a task.

    Args:
        run: A task, or a run whose task is used.
        split: Split whose rows are answered; by default the one that the task's runs are judged on.

    Raises:
        ValueError: The task defines no local features, or does not have the split.
    """
    task = run.task if isinstance(run, Run) else run
    split = split or task.default_split
    versions = versions_of(task)
    rights: dict[str, tuple[Right, Right]] = {}
    left_out = []
    for name, version in versions.items():
        try:
            rights[name] = _right(version, split)
        except ConfigError as error:  # another version may be impossible at these sizes
            if version is task:
                raise
            left_out.append(f"{name}: {error}")
    difficulty = {name: versions[name].split(split).difficulty.numpy() for name in rights}
    levels = sorted({int(level) for values in difficulty.values() for level in values})
    table = np.array(
        [
            [
                [_interval(right[difficulty[name] == level]) for level in levels]
                for right in rows.values()
            ]
            for name, (rows, _) in rights.items()
        ]
    )  # [version guess difficulty 3]
    accuracy, low, high = torch.from_numpy(table).float().unbind(-1)
    return Shortcuts(
        accuracy=accuracy,
        low=low,
        high=high,
        n=torch.tensor([[int((d == x).sum()) for x in levels] for d in difficulty.values()]),
        overall=_means([rows for rows, _ in rights.values()]),
        fitted=_means([rows for _, rows in rights.values()]),
        versions=tuple(rights),
        guesses=tuple(next(iter(rights.values()))[0]),
        difficulties=tuple(levels),
        trained=task.trained_difficulty,
        unit=task.unit,
        split=split,
        left_out=tuple(left_out),
    )


def versions_of(task: Task) -> dict[str, Task]:
    """Return a task in each of its versions, by name; a task without versions is returned alone."""
    field = type(task.cfg).model_fields.get("version")
    if field is None:
        return {"the task": task}
    return {
        name: task
        if name == task.cfg.model_dump()["version"]
        else type(task)(task.cfg.model_copy(update={"version": name}), task.seed)
        for name in get_args(field.annotation)
    }


def _right(task: Task, split: str) -> tuple[Right, Right]:
    """Return which rows of a split, and of the training split, each guess gets right."""
    asked = task.split(split)
    asked_features = task.local_features(asked)  # raises here if the task defines none
    known = task.split(FIT)
    features = task.local_features(known)
    found: tuple[Right, Right] = {}, {}
    guesses = _fitted(features, task.to_guess(known))
    for rows, numbers, right in (
        (asked, asked_features, found[0]),
        (known, features, found[1]),
    ):
        wanted = task.to_guess(rows)
        for name, answer in guesses.items():
            right[name] = answer(numbers) == wanted
    return found


def _fitted(features: Features, answers: np.ndarray) -> dict[str, Guess]:
    """Fit every guess on rows with these features and answers, and return them by name."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    commonest = np.bincount(answers).argmax()
    guesses: dict[str, Guess] = {MAJORITY: lambda asked: commonest}
    for name, numbers in features.items():
        guesses[name] = partial(_from_one, name, fit_rule(numbers, answers))
    trees = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    trees.fit(np.stack(list(features.values()), 1), answers)
    names = list(features)
    guesses[ALL] = lambda asked: trees.predict(np.stack([asked[name] for name in names], 1))
    return guesses


def _from_one(name: str, rule: Rule, asked: Features) -> np.ndarray:
    return rule.guess(asked[name])


def _interval(right: np.ndarray) -> tuple[float, float, float]:
    """Return the share of right rows and the ends of its interval; NaN without rows."""
    if not len(right):
        return np.nan, np.nan, np.nan
    return float(right.mean()), *wilson(int(right.sum()), len(right))


def _means(rights: list[Right]) -> Float[Tensor, "version guess"]:
    return torch.tensor([[float(right.mean()) for right in rows.values()] for rows in rights])
