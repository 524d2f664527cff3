"""What does a thought model answer after each number of thoughts, and is it right?"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.kit.labels import literal
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.relaid import counts_of, relaid
from workbench.capabilities import CanThink
from workbench.instruments.speaking import ROWS, speak
from workbench.runs.evaluation import wilson
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import ANSWER, WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

LONGEST = 24  # characters of an answer that fit beside a point


@dataclass(frozen=True, eq=False)
class SaidAnswers(Result):
    """Answers generated after 0 to all thoughts; the control is an untrained twin.

    Probabilities are those of the token that distinguishes the right answer from others. The words
    before it are given: the steps of the dataset's own solution that the layout keeps, and the
    beginning of the answer.
    """

    right: Bool[Tensor, "thought question"]
    """Whether the generated answer is right."""
    probability: Float[Tensor, "thought question"]
    """Probability of the right answer."""
    untrained: Float[Tensor, "thought question"]
    """The same in a model of the same shape with fresh weights."""
    said: tuple[tuple[str, ...], ...]
    """The generated text, by number of thoughts and question."""
    questions: tuple[str, ...]
    true: tuple[str, ...]
    """The right answers."""

    @property
    def n(self) -> int:
        """Number of questions."""
        return self.right.shape[1]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            {
                "question": question,
                "thoughts": k,
                "said": self.said[k][question],
                "true": self.true[question],
                "right": bool(self.right[k, question]),
                "probability": float(self.probability[k, question]),
                "untrained": float(self.untrained[k, question]),
            }
            for question in range(self.n)
            for k in range(len(self.right))
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, band, styled

        x = [float(k) for k in range(len(self.right))]
        mean, low, high = (part.tolist() for part in bootstrap(self.probability))
        many = self.n > 1
        figure = go.Figure()
        if many:
            figure.add_trace(band(x, low, high, COLOURS[0]))
        figure.add_scatter(
            x=x,
            y=mean,
            mode="lines+markers" if many else "lines+markers+text",
            text=None if many else [literal(_answer(words[0])) for words in self.said],
            textposition="top center",
            cliponaxis=False,
            name="probability of the right answer",
            line={"color": COLOURS[0]},
        )
        if many:
            ends = [wilson(int(row.sum()), self.n) for row in self.right]
            lows, highs = zip(*ends, strict=True)
            figure.add_trace(band(x, lows, highs, COLOURS[2]))
            share = self.right.float().mean(1).tolist()
            line = {"color": COLOURS[2]}
            figure.add_scatter(x=x, y=share, name="share of right answers", line=line)
        figure.add_scatter(
            x=x,
            y=self.untrained.mean(1).tolist(),
            mode="lines",
            name="control: probability in an untrained twin",
            line={"color": CONTROL, "dash": "dot"},
        )
        figure.update_xaxes(title="thoughts", dtick=1)
        figure.update_yaxes(range=[-0.03, 1.12])
        title = "What is said after each number of thoughts"
        return styled(figure, title if many else literal(f"{title}; true: {self.true[0]}"), 380)

    def summary(self) -> str:
        last = len(self.right) - 1
        if self.n == 1:
            said = ", ".join(
                f"{k}: {words[0]} ({'right' if self.right[k, 0] else 'wrong'})"
                for k, words in enumerate(self.said)
            )
            return f"said by number of thoughts: {said}; the true answer is {self.true[0]}"
        mean, low, high = bootstrap(self.probability[-1])
        first, final = (self.right[k].float().mean() for k in (0, last))
        return (
            f"{first:.3f} of the answers are right after 0 thoughts, {final:.3f} after {last}, "
            f"with a probability of {mean:.3f} [{low:.3f}, {high:.3f}]; untrained "
            f"{self.untrained[-1].mean():.3f} (n={self.n})"
        )


def _answer(said: str) -> str:
    """Extract the answer from the generated text, or the text's beginning if it has no answer."""
    answer = said.rpartition(ANSWER)[2].strip() if ANSWER in said else said
    return shorten(answer, LONGEST, placeholder=" …") or "nothing"


@torch.no_grad()
def said_answers(model: CanThink, task: WordedTask, problems: Sequence[Problem]) -> SaidAnswers:
    """Generate answers after 0 to as many thoughts as the task's layout gives these questions.

    Args:
        model: The model; hooks that are active on it apply.
        task: The questions' task.
        problems: The questions.
    """
    twin = model.untrained()
    said, right, probability, fresh = [], [], [], []
    for k in counts_of(task, problems):
        rows = relaid(model, task, problems, task.layout.with_fillers(k))
        said.append(tuple(speak(model, task, rows)))
        answers = [task.answer_in(words) for words in said[-1]]
        scores = [task.score(p, words) for p, words in zip(problems, answers, strict=True)]
        right.append(torch.tensor([score.right for score in scores]))
        probability.append(_probability(model, rows))
        fresh.append(_probability(twin, rows))
    return SaidAnswers(
        right=torch.stack(right),
        probability=torch.stack(probability),
        untrained=torch.stack(fresh),
        said=tuple(said),
        questions=tuple(problem.question for problem in problems),
        true=tuple(problem.answer for problem in problems),
    )


def _probability(model: CanThink, batch: WordedBatch) -> Float[Tensor, " question"]:
    """Compute the probability of the token that decides the answer."""
    found = []
    for start in range(0, len(batch), ROWS):
        rows = batch[start : start + ROWS]
        logits = model(**rows.inputs, logits_at=rows.read_at)
        found.append(logits.float().softmax(-1).gather(1, rows.answer[:, None])[:, 0])
    return torch.cat(found).cpu()
