"""How good is the best checkpoint of each stage of a curriculum?

A run keeps the weights that were best on the validation questions in every stage, in half
precision. Each checkpoint is evaluated in the layout of its stage, as in training. CoCoNuT is
reported to fall on ProsQA from 95 % in stage 5 to 92 % in stage 6, where AGCLR has 96 % (AGCLR,
arXiv 2606.07720, section 5.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.asking import best_guess, numbers_of, rights, runs_beside, task_for
from analyses.kit.declare import Example, analysis
from analyses.kit.labels import literal
from analyses.kit.result import Result
from workbench.capabilities import CanThink
from workbench.runs import Run
from workbench.runs.evaluation import wilson
from workbench.settings.config import ConfigError
from workbench.tasks.worded.curriculum import Curriculum
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

VALID = "valid"  # the split on which the best step of a stage is chosen

AnswerSource = Literal["asked", "history"]


class Best(NamedTuple):
    """The best measurement of a stage on the validation questions."""

    stage: int
    step: int
    thoughts: int
    accuracy: float


@dataclass(frozen=True, eq=False)
class StageCurve(Result):
    """Accuracy by stage, one point for each run and stage; the control is the best guess."""

    accuracy: Float[Tensor, " point"]
    low: Float[Tensor, " point"]
    high: Float[Tensor, " point"]
    """Ends of the 95 % Wilson interval."""
    n: Int[Tensor, " point"]
    stage: Int[Tensor, " point"]
    step: Int[Tensor, " point"]
    """Step of the weights that were evaluated."""
    thoughts: Int[Tensor, " point"]
    """Thoughts per question in the stage."""
    run: Int[Tensor, " point"]
    """Index of the run in `runs`."""
    runs: tuple[str, ...]
    split: str
    guess: str
    guess_accuracy: float
    source: str

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            {
                "run": self.runs[int(self.run[i])],
                "stage": int(self.stage[i]),
                "thoughts": int(self.thoughts[i]),
                "step": int(self.step[i]),
                "accuracy": float(self.accuracy[i]),
                "low": float(self.low[i]),
                "high": float(self.high[i]),
                "n": int(self.n[i]),
            }
            for i in range(len(self.accuracy))
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, legend_line, styled

        figure = go.Figure()
        for number, name in enumerate(self.runs):
            of = (self.run == number).nonzero()[:, 0]
            mean = self.accuracy[of]
            figure.add_scatter(
                x=self.stage[of].tolist(),
                y=mean.tolist(),
                error_y={
                    "type": "data",
                    "array": (self.high[of] - mean).clamp(min=0).tolist(),
                    "arrayminus": (mean - self.low[of]).clamp(min=0).tolist(),
                },
                mode="markers+lines" if len(of) > 1 else "markers",
                marker={"size": 9},
                line={"color": COLOURS[number % len(COLOURS)]},
                customdata=torch.stack((self.thoughts, self.step, self.n), 1)[of].tolist(),
                hovertemplate=f"{literal(name)}, stage %{{x}}: %{{y:.3f}}<br>%{{customdata[0]}} "
                "thoughts, step %{customdata[1]}, n=%{customdata[2]}<extra></extra>",
                name=literal(name),
            )
        figure.add_hline(y=self.guess_accuracy, line_color=CONTROL, line_dash="dot")
        legend_line(figure, f"best guess: {literal(self.guess)}", "dot", CONTROL)
        figure.update_xaxes(title="stage", dtick=1)
        figure.update_yaxes(title=f"accuracy on {self.split}", range=[-0.02, 1.05])
        return styled(figure, "The best checkpoint of each stage")

    def summary(self) -> str:
        parts = []
        for number, name in enumerate(self.runs):
            points = [
                f"stage {int(self.stage[i])} {self.accuracy[i]:.3f} [{self.low[i]:.3f}, "
                f"{self.high[i]:.3f}]"
                for i in (self.run == number).nonzero()[:, 0].tolist()
            ]
            parts.append(f"{name}: {', '.join(points)}")
        least, most = int(self.n.min()), int(self.n.max())
        n = str(most) if least == most else f"{least} to {most}"
        where = f"{self.split}, {self.guess} {self.guess_accuracy:.3f}"
        return f"{'; '.join(parts)}; {where} (n={n})"


@analysis(given=("split",), on="run", example=Example(run="stages"))
@torch.no_grad()
def stage_curve(
    run: Run,
    *,
    split: str | None = None,
    beside: Sequence[str] = (),
    rows: int | None = None,
    source: AnswerSource = "asked",
) -> StageCurve:
    """Measure the accuracy of every stage's best checkpoint, for one or several runs.

    Args:
        run: The run; all runs answer its questions.
        split: Split of the questions; by default the one that the task is judged on.
        beside: Names or folders of runs to compare it with.
        rows: Number of questions, from the start of the split; by default all.
        source: `asked` evaluates the checkpoints. `history` takes what training measured: the best
            accuracy on the validation questions, by which the checkpoint was chosen.

    Raises:
        ConfigError: A run does not answer in words, or has kept no stage's checkpoint.
    """
    runs = runs_beside(run, beside)
    first = cast(WordedTask, run.task)
    split = VALID if source == "history" else split or first.default_split
    numbers = numbers_of(first, split, rows)
    points = _points(runs, split, numbers, source)
    guess, guessed = best_guess(first, split)
    ends = [wilson(round(share * n), n) for _, _, share, n in points]
    return StageCurve(
        accuracy=torch.tensor([share for _, _, share, _ in points]),
        low=torch.tensor([low for low, _ in ends]),
        high=torch.tensor([high for _, high in ends]),
        n=torch.tensor([n for *_, n in points]),
        stage=torch.tensor([best.stage for _, best, *_ in points]),
        step=torch.tensor([best.step for _, best, *_ in points]),
        thoughts=torch.tensor([best.thoughts for _, best, *_ in points]),
        run=torch.tensor([number for number, *_ in points]),
        runs=tuple(one.name for one in runs),
        split=split,
        guess=guess,
        guess_accuracy=guessed,
        source=source,
    )


def _points(
    runs: Sequence[Run], split: str, numbers: Sequence[int], source: AnswerSource
) -> list[tuple[int, Best, float, int]]:
    """Return run index, best step, accuracy and number of questions, for each run and stage."""
    points = []
    for number, run in enumerate(runs):
        for best in best_of_stages(run, kept=source == "asked"):
            if source == "asked":
                right = _asked(run, runs[0], best, split, numbers)
                points.append((number, best, float(right.float().mean()), len(right)))
            else:
                n = min(run.recipe.training.measure.n, len(numbers))
                points.append((number, best, best.accuracy, n))
    return points


def best_of_stages(run: Run, kept: bool) -> list[Best]:
    """Return the best measurement of each stage in a run's history; ties go to the first.

    Args:
        run: The run.
        kept: Consider only steps whose weights the run has kept.

    Raises:
        ConfigError: There is no such measurement.
    """
    steps = set(run.steps)
    found: dict[int, Best] = {}
    for record in run.history:
        if record["split"] != VALID or (kept and record["step"] not in steps):
            continue
        best = _best(record)
        if best.stage not in found or found[best.stage].accuracy < best.accuracy:
            found[best.stage] = best
    if not found:
        what = "keeps weights of no step that was" if kept else "has nothing that was"
        raise ConfigError(f"{run.name} {what} measured on {VALID}")
    return [found[stage] for stage in sorted(found)]


def _best(record: Mapping[str, Any]) -> Best:
    thoughts = record.get("thoughts") or 0
    return Best(record.get("stage", 0), record["step"], thoughts, record["accuracy"])


def _asked(run: Run, first: Run, best: Best, split: str, numbers: Sequence[int]) -> Tensor:
    """Return which questions the weights of a stage answer right, in the stage's layout."""
    task = task_for(run, first)
    cfg = run.recipe.training.curriculum
    if cfg is None:
        raise ConfigError(f"{run.name} was trained without a curriculum, so it has no stages")
    longest = 0
    if cfg.method == "icot":  # its stages remove tokens until the longest solution is gone
        own = cast(WordedTask, run.task)
        longest = max(sum(map(len, e.steps)) for e in own.encoded("train"))
    layout = Curriculum(cfg, longest).layout(best.stage)
    model = cast(CanThink, run.model_at(best.step))
    return rights(model, task, split, numbers, layout)
