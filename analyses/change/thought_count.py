"""How many thoughts does a right answer need? The same questions with 0, 1, 2, … thoughts.

The control has the same number of thoughts without information on the question: each is the mean
thought over all questions. It separates the content of thoughts from the effect of more positions,
or of their number.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.thought_answers import HooksOfRows, mean_row, put_thoughts, said_under, unchanged
from analyses.read.thought_states import THOUGHT, thought_states
from workbench.capabilities import CanThink
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

RIGHT, WRONG, OTHER, NOTHING = range(4)
KINDS = ("right", "the wrong concept", "another answer", "no answer")


@dataclass(frozen=True, eq=False)
class ThoughtCount(Result):
    """Answers after each number of thoughts.

    The axis `ends` holds the mean and the low and high end of its 95 % interval.
    """

    said: Int[Tensor, "count question"]
    """Kind of each answer, as an index into `kinds`."""
    shares: Float[Tensor, "count kind ends"]
    """Share of the answers of each kind."""
    right_control: Bool[Tensor, "count question"]
    """Whether the answer is right with the control's mean thoughts."""
    control: Float[Tensor, "count ends"]
    """Share of right answers with the control's mean thoughts."""
    gain: Float[Tensor, "count ends"]
    """Accuracy minus that of the control, paired by question."""
    kinds: tuple[str, ...]
    own: int
    """Number of thoughts in the task's layout: the run's own, or the number requested."""
    floors: dict[str, float]
    """Accuracy of guesses without reasoning; empty if the questions are not of a split."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for count in range(len(self.said)):
            for kind, name in enumerate(self.kinds):
                share, low, high = self.shares[count, kind].tolist()
                row: dict[str, object] = {"thoughts": count, "answer": name, "share": share}
                row |= {"low": low, "high": high}
                if kind == RIGHT:
                    ends = (*self.control[count].tolist(), *self.gain[count].tolist())
                    names = ("control", "gain")
                    columns = [f"{n}{end}" for n in names for end in ("", "_low", "_high")]
                    row |= dict(zip(columns, ends, strict=True))
                rows.append(row | {"n": self.said.shape[1], "own": count == self.own})
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.labels import literal
        from analyses.kit.style import COLOURS, CONTROL, band, legend_line, styled

        figure = go.Figure()
        counts = list(range(len(self.said)))
        mean, low, high = self.control.T.tolist()
        figure.add_trace(band(counts, low, high, CONTROL))
        line: dict[str, object] = {"color": CONTROL, "dash": "dot"}
        name = "control: right, with the mean thought"
        figure.add_scatter(x=counts, y=mean, name=name, mode="lines+markers", line=line)
        for kind, name in enumerate(self.kinds):
            mean, low, high = self.shares[:, kind].T.tolist()
            if kind != RIGHT and not any(mean):
                continue
            colour = COLOURS[(1, 2, 4, 3)[kind]]
            figure.add_trace(band(counts, low, high, colour))
            line = {"color": colour, "width": 3 if kind == RIGHT else 2}
            figure.add_scatter(x=counts, y=mean, name=name, mode="lines+markers", line=line)
        for (name, floor), dash in zip(self.floors.items(), ("dash", "longdash"), strict=False):
            figure.add_hline(y=floor, line={"color": CONTROL, "width": 1, "dash": dash})
            legend_line(figure, literal(name), dash, CONTROL, width=1)
        figure.add_vline(x=self.own, line={"dash": "dash", "color": CONTROL, "width": 1})
        figure.update_xaxes(title="thoughts", dtick=max(1, len(counts) // 10))
        figure.update_yaxes(title="share of answers", range=[-0.03, 1.03])
        title = f"What is answered after how many thoughts; upright: {self.own}, as laid out"
        return styled(figure, title)

    def summary(self) -> str:
        right = self.shares[:, RIGHT]
        best = int(right[:, 0].argmax())
        points = {0: "0", self.own: str(self.own)} | {best: f"{best} (the best)"}
        parts = [
            f"{right[count, 0]:.3f} [{right[count, 1]:.3f}, {right[count, 2]:.3f}] with {name}"
            for count, name in sorted(points.items())
        ]
        kinds = zip(self.kinds[1:], self.shares[self.own, 1:, 0].tolist(), strict=True)
        rest = ", ".join(f"{name} {share:.3f}" for name, share in kinds)
        return (
            f"right answers by thoughts: {'; '.join(parts)}; with {self.own}: {rest}, and "
            f"{self.control[self.own, 0]:.3f} right with mean thoughts; n={self.said.shape[1]}"
        )


@analysis(given=("task", "problems", "split"), example=Example(run="thoughts", n=4))
def thought_count(
    model: CanThink,
    batch: WordedBatch,
    *,
    task: WordedTask,
    problems: list[Problem],
    split: str | None = None,
    most: int | None = None,
) -> ThoughtCount:
    """Measure answers after 0, 1, … thoughts, and after as many mean thoughts as a control.

    Args:
        model: A thought model; hooks that are active on it apply first.
        batch: The questions, with the thoughts that the run was trained with.
        task: The task; it gives the scoring rules, the vocabulary and the layout.
        problems: The problems of the questions.
        split: Name of the questions' split.
        most: The largest number of thoughts; by default twice the layout's, or as many as fit.

    Raises:
        ValueError: `most` thoughts do not fit into the model's context, or `most` is below the
            layout's number.
    """
    own = task.layout.n_fillers
    most = _checked(model, batch, own, most)
    said, control = [], []
    for count in range(most + 1):
        rows = task.lay_out_problems(problems, task.layout.with_fillers(count)).to(model.device)
        kinds = _kinds(model, task, rows, problems, unchanged)
        said.append(kinds)
        if bool(rows.n_thoughts.any()):
            mean = mean_row(thought_states(model, rows, [THOUGHT])[THOUGHT])
            kinds = _kinds(model, task, rows, problems, put_thoughts(mean, range(count)))
        control.append(kinds == RIGHT)
    found, right_control = torch.stack(said), torch.stack(control)
    right = (found == RIGHT).float()
    by_kind = torch.stack([(found == kind).float() for kind in range(len(KINDS))], dim=1)
    return ThoughtCount(
        said=found,
        shares=torch.stack(bootstrap(by_kind), dim=-1),
        right_control=right_control,
        control=torch.stack(bootstrap(right_control.float()), dim=-1),
        gain=torch.stack(bootstrap(right - right_control.float()), dim=-1),
        kinds=KINDS,
        own=own,
        floors={} if split is None else _floors(task, split),
    )


def _checked(model: CanThink, batch: WordedBatch, own: int, most: int | None) -> int:
    """Return the largest number of thoughts for which the longest question and its answer fit.

    Raises:
        ValueError: `most` is below the layout's number, or does not fit.
    """
    longest = int((batch.prompt + batch.scored.sum(1)).max())
    room = own + model.cfg.n_ctx - longest
    if most is None:
        return max(min(2 * own, room), own)
    if most < own:
        raise ValueError(f"most={most} must be at least {own}, the thoughts of the layout")
    if most > room:
        raise ValueError(
            f"most={most} thoughts do not fit: the longest question and its answer leave room for "
            f"{room} in the model's n_ctx of {model.cfg.n_ctx}"
        )
    return most


def _kinds(
    model: CanThink,
    task: WordedTask,
    rows: WordedBatch,
    problems: list[Problem],
    hooks: HooksOfRows,
) -> Int[Tensor, " question"]:
    """Generate an answer to each question and return its kind."""
    said = said_under(model, task, rows, hooks)
    return torch.tensor([_kind(task, p, answer) for p, answer in zip(problems, said, strict=True)])


def _kind(task: WordedTask, problem: Problem, said: str) -> int:
    """Classify an answer: right, the other choice (the wrong concept), another one, or none."""
    score = task.score(problem, said)
    if score.right:
        return RIGHT
    if not score.answered:
        return NOTHING
    before, right, wrong = task.decides(problem)
    if wrong:
        rest = problem.answer[len(before) + len(right) :]
        other = replace(problem, answer=f"{before}{wrong}{rest}")
        if task.score(other, said).right:
            return WRONG
    return OTHER


def _floors(task: WordedTask, split: str) -> dict[str, float]:
    """Return the accuracy of the commonest answer and of the best guess without reasoning."""
    floors = {"commonest answer": task.majority_rate(split)}
    guesses = task.shortcuts(split)
    if guesses:
        best = max(guesses, key=lambda name: guesses[name])
        floors[f"best guess: {best}"] = guesses[best]
    return floors
