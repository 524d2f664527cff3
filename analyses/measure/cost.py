"""What does an answer cost? Accuracy against operations, passes and time, for thoughts and words.

A run that thinks is evaluated with every number of thoughts from 0 to its own. A run that writes
out its steps is evaluated with limits on the number of words: its chain is cut at the end of a
step, and the answer mark is put there. The limits are 0 up to the largest number of thoughts of any
run, the quarters of the run's longest chain, and no limit. So both kinds of run can be compared at
equal budgets.

Operations are counted from shapes (`workbench.instruments.flops`). Passes are those that must run
one after another: one for each thought and one for each generated token. Time is measured one
question at a time, as the median of several rounds in which all ways of answering take turns. On a
machine that does other work too, the ratio to the chain of thought's time is more reliable than the
seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.asking import best_guess, numbers_of, runs_beside, task_for
from analyses.kit.declare import Example, analysis
from analyses.kit.labels import literal
from analyses.kit.result import Result
from analyses.measure.spending import ALL, Speaker, Spent, latencies
from workbench.capabilities import CanThink
from workbench.runs import Run
from workbench.runs.evaluation import wilson
from workbench.settings.config import ConfigError
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

AXES = {
    "flops": "operations for a question",
    "passes": "passes, one after another",
    "latency": "seconds for a question alone",
}


class Way(NamedTuple):
    """A way in which one run answers: a number of thoughts or a limit on its words."""

    run: int
    thoughts: int
    words: int
    """Most tokens of the chain before the answer; −1 for no limit."""
    spent: Spent
    model: CanThink


@dataclass(frozen=True, eq=False)
class Cost(Result):
    """Accuracy and costs as means over questions, one point for each way of answering.

    The control is the best guess without reasoning. Accuracies have Wilson intervals; times have
    the minimum and maximum over rounds.
    """

    accuracy: Float[Tensor, " point"]
    low: Float[Tensor, " point"]
    high: Float[Tensor, " point"]
    positions: Float[Tensor, " point"]
    """Token positions that are run, including the question's."""
    passes: Float[Tensor, " point"]
    flops: Float[Tensor, " point"]
    latency: Float[Tensor, " point"]
    latency_low: Float[Tensor, " point"]
    latency_high: Float[Tensor, " point"]
    ratio: Float[Tensor, " point"]
    """Time divided by the reference's: the first run that writes out all its steps, or else the
    first run."""
    thoughts: Int[Tensor, " point"]
    words: Int[Tensor, " point"]
    """Most tokens of the chain, after which it is cut; −1 for no limit."""
    run: Int[Tensor, " point"]
    runs: tuple[str, ...]
    reference: int
    """Index of the point that times are compared with."""
    guess: str
    guess_accuracy: float
    split: str
    n: int

    def way(self, point: int) -> str:
        """Return a label for the way in which a point answers."""
        if self.words[point] != ALL:
            return f"at most {int(self.words[point])} words"
        return f"{int(self.thoughts[point]) or 'no'} thoughts"

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        times = ("latency", "latency_low", "latency_high", "ratio")
        names = ("accuracy", "low", "high", "positions", "passes", "flops", *times)
        return pd.DataFrame(
            {
                "run": self.runs[int(self.run[i])],
                "way": self.way(i),
                "thoughts": int(self.thoughts[i]),
                "words": int(self.words[i]) if self.words[i] != ALL else None,
            }
            | {name: float(getattr(self, name)[i]) for name in names}
            for i in range(len(self.accuracy))
        )

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL, legend_line, styled

        figure = make_subplots(1, 3, shared_yaxes=True, horizontal_spacing=0.04)
        for column, (field, title) in enumerate(AXES.items(), 1):
            for number in range(len(self.runs)):
                self._draw(figure, number, field, column)
            figure.add_hline(
                y=self.guess_accuracy, line_color=CONTROL, line_dash="dot", row=1, col=column
            )
            figure.update_xaxes(title=title, row=1, col=column)
            if field != "passes":
                figure.update_xaxes(type="log", exponentformat="power", row=1, col=column)
        legend_line(figure, f"best guess: {literal(self.guess)}", "dot", CONTROL)
        figure.update_yaxes(range=[-0.02, 1.05])
        figure.update_yaxes(title=f"accuracy on {self.split}", col=1)
        return styled(figure, "Accuracy against its cost", height=440)

    def _draw(self, figure: "go.Figure", number: int, field: str, column: int) -> None:
        """Draw one run's ways of answering, joined in order of their passes."""
        from analyses.kit.style import COLOURS

        of = (self.run == number).nonzero()[:, 0]
        of = of[self.passes[of].argsort()]
        mean, x = self.accuracy[of], getattr(self, field)[of]
        figure.add_scatter(
            x=x.tolist(),
            y=mean.tolist(),
            error_y={
                "type": "data",
                "array": (self.high[of] - mean).clamp(min=0).tolist(),
                "arrayminus": (mean - self.low[of]).clamp(min=0).tolist(),
                "width": 2,
            },
            mode="markers+lines",
            name=literal(self.runs[number]),
            legendgroup=str(number),
            showlegend=column == 1,
            line={"color": COLOURS[number % len(COLOURS)]},
            text=[f"{self.way(i)}, {self.ratio[i]:.2f} × the time" for i in of.tolist()],
            hovertemplate="%{text}<br>%{x:.3g}: %{y:.3f}<extra></extra>",
            row=1,
            col=column,
        )

    def summary(self) -> str:
        parts = []
        for number, name in enumerate(self.runs):
            i = int((self.run == number).nonzero()[-1])
            parts.append(
                f"{name} ({self.way(i)}) {self.accuracy[i]:.3f} [{self.low[i]:.3f}, "
                f"{self.high[i]:.3f}] at {self.passes[i]:.1f} passes, {self.flops[i]:.3g} "
                f"operations, {self.ratio[i]:.2f} × the time"
            )
        base = f"{self.runs[int(self.run[self.reference])]}, {self.way(self.reference)}"
        parts.append(f"time of {base}: {1000 * self.latency[self.reference]:.1f} ms")
        return f"{'; '.join(parts)}; {self.guess} {self.guess_accuracy:.3f} (n={self.n})"


@analysis(
    given=("split",),
    on="run",
    example=Example(run="stages", options={"rows": 4, "timed": 1, "repeats": 1}),
)
@torch.no_grad()
def cost(
    run: Run,
    *,
    split: str | None = None,
    beside: Sequence[str] = (),
    rows: int | None = None,
    timed: int = 5,
    repeats: int = 5,
) -> Cost:
    """Measure accuracy, operations, passes and time of one or several runs at several budgets.

    Args:
        run: The run; all runs answer its questions.
        split: Split of the questions; by default the one that the task is judged on.
        beside: Names or folders of the other runs.
        rows: Number of questions, from the start of the split; by default all.
        timed: Number of questions that are timed.
        repeats: Number of timed rounds, not counting the warm-up round.

    Raises:
        ConfigError: A run does not answer in words, or a number is too small.
    """
    for name, number in (("timed", timed), ("repeats", repeats)):
        if number < 1:
            raise ConfigError(f"{name}={number} must be at least 1")
    runs = runs_beside(run, beside)
    first = cast(WordedTask, run.task)
    split = split or first.default_split
    numbers = numbers_of(first, split, rows)
    speakers = [
        Speaker(cast(CanThink, one.model), task_for(one, run), split, numbers) for one in runs
    ]
    most = max(speaker.task.layout.n_fillers for speaker in speakers)
    ways = [way for i, speaker in enumerate(speakers) for way in _ways(i, speaker, most)]
    models, spent = [way.model for way in ways], [way.spent for way in ways]
    times = torch.tensor(latencies(models, spent, timed, repeats))
    base = _reference(ways, speakers)
    guess, guessed = best_guess(first, split)
    middle = times.median(1).values
    return Cost(
        **_means(ways),
        latency=middle,
        latency_low=times.min(1).values,
        latency_high=times.max(1).values,
        ratio=(times / times[base]).median(1).values,
        runs=tuple(one.name for one in runs),
        reference=base,
        guess=guess,
        guess_accuracy=guessed,
        split=split,
        n=len(numbers),
    )


def _reference(ways: Sequence[Way], speakers: Sequence[Speaker]) -> int:
    """Return the index of the first way that writes all steps, or else of the first run's own."""
    layouts = [speakers[way.run].task.layout for way in ways]
    pairs = enumerate(zip(ways, layouts, strict=True))
    whole = (
        i
        for i, (way, layout) in pairs
        if way.words == ALL and not (layout.n_fillers or layout.skipped or layout.skipped_tokens)
    )
    return next(whole, max(i for i, way in enumerate(ways) if way.run == 0))


def _ways(index: int, speaker: Speaker, most: int) -> list[Way]:
    """List the ways in which a run answers; the way that it was trained for comes last."""
    layout, model = speaker.task.layout, speaker.model
    if layout.filler == "latent" and layout.n_fillers:
        counts = range(layout.n_fillers + 1)
        spent = [speaker.after_thoughts(layout.with_fillers(k)) for k in counts]
        return [Way(index, k, ALL, one, model) for k, one in zip(counts, spent, strict=True)]
    whole = Way(index, 0, ALL, speaker.after_thoughts(layout), model)
    if layout.skipped or layout.skipped_tokens:
        return [whole]
    longest = max(map(speaker.chain, speaker.whole(layout)))
    budgets = {*range(most + 1), *(round(longest * part / 4) for part in range(4))}
    cuts = sorted(budget for budget in budgets if budget < longest)
    return [Way(index, 0, n, speaker.after_words(layout, n), model) for n in cuts] + [whole]


def _means(ways: Sequence[Way]) -> dict[str, Tensor]:
    n = len(ways[0].spent.right)
    ends = [wilson(int(way.spent.right.sum()), n) for way in ways]
    found = {
        name: torch.stack([getattr(way.spent, name).mean() for way in ways]).float()
        for name in ("positions", "passes", "flops")
    }
    return found | {
        "accuracy": torch.stack([way.spent.right.float().mean() for way in ways]),
        "low": torch.tensor([low for low, _ in ends]),
        "high": torch.tensor([high for _, high in ends]),
        "thoughts": torch.tensor([way.thoughts for way in ways]),
        "words": torch.tensor([way.words for way in ways]),
        "run": torch.tensor([way.run for way in ways]),
    }
