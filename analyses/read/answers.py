"""What does a model answer after each loop or number of thoughts, and how confidently?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import literal, loop_labels
from analyses.kit.parts import in_parts
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.said_answers import SaidAnswers, said_answers
from workbench.capabilities import CanLoop, CanRecord
from workbench.kinds import THOUGHTS, depth_model, thought_model, worded_task
from workbench.tasks import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.problem import Problem

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True, eq=False)
class Answers(Result):
    """Each loop's answer to every question in a batch; the control is an untrained twin."""

    probability: Float[Tensor, "loop question"]
    """Probability of the right answer."""
    right: Bool[Tensor, "loop question"]
    """Whether the likeliest answer is the right one."""
    likeliest: Int[Tensor, "loop question"]
    """Index of the likeliest answer."""
    untrained: Float[Tensor, "loop question"]
    """Probability of the right answer in a model of the same shape with fresh weights."""
    said: tuple[tuple[str, float], ...]
    """Each loop's likeliest answer to the first question, and its probability."""
    true: str
    """The right answer to the first question."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        labels = loop_labels(len(self.probability))
        return pd.DataFrame(
            {
                "question": question,
                "state": labels[loop],
                "probability": float(self.probability[loop, question]),
                "right": bool(self.right[loop, question]),
                "untrained": float(self.untrained[loop, question]),
            }
            for question in range(self.probability.shape[1])
            for loop in range(len(labels))
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, band, styled

        loops = [loop + 1.0 for loop in range(len(self.probability))]
        figure = go.Figure()
        mean, low, high = (part.tolist() for part in bootstrap(self.probability))
        many = self.probability.shape[1] > 1
        if many:
            figure.add_trace(band(loops, low, high, COLOURS[0]))
        figure.add_scatter(
            x=loops,
            y=mean,
            mode="lines+markers" if many else "lines+markers+text",
            text=None if many else self._changes(),
            textposition="top center",
            cliponaxis=False,
            name="probability of the right answer",
            line={"color": COLOURS[0]},
        )
        if many:
            share = self.right.float().mean(1).tolist()
            line = {"color": COLOURS[2]}
            figure.add_scatter(x=loops, y=share, name="share of right answers", line=line)
        figure.add_scatter(
            x=loops,
            y=self.untrained.mean(1).tolist(),
            mode="lines",
            name="control: untrained twin",
            line={"color": CONTROL, "dash": "dot"},
        )
        figure.update_xaxes(title="after loop", dtick=1)
        figure.update_yaxes(title="probability", range=[-0.03, 1.12])
        title = "What each loop answers" if many else f"What each loop answers; true: {self.true}"
        return styled(figure, literal(title), 380)

    def _changes(self) -> list[str]:
        """Return each loop's answer to the first question; empty if the loop before gave it too."""
        words = [literal(word) for word, _ in self.said]
        return ["" if loop and word == words[loop - 1] else word for loop, word in enumerate(words)]

    def summary(self) -> str:
        n = self.probability.shape[1]
        if n == 1:
            words = ", ".join(f"{word} ({share:.2f})" for word, share in self.said)
            return f"after each loop: {words}; the true answer is {self.true}"
        first, last = self.right[0].float().mean(), self.right[-1].float().mean()
        mean, low, high = bootstrap(self.probability[-1])
        return (
            f"{first:.3f} of the answers are right after loop 1, {last:.3f} after loop "
            f"{len(self.right)}, with a probability of {mean:.3f} [{low:.3f}, {high:.3f}]; "
            f"untrained {self.untrained[-1].mean():.3f} (n={n})"
        )


@analysis(given=("n_loops", "task", "problems"))
@torch.no_grad()
def answers(
    model: CanRecord,
    batch: Batch,
    *,
    n_loops: int | None = None,
    task: Task | None = None,
    problems: Sequence[Problem] = (),
) -> Answers | SaidAnswers:
    """Compute a looped model's answer after each loop, or a thought model's by number of thoughts.

    A looped model's answer is read at the position that the task specifies.

    Args:
        model: The model; hooks that are active on it apply.
        batch: Questions.
        n_loops: For a looped model, the loops to run; by default as many as in training.
        task: For a thought model, the questions' task; its layout sets the number of thoughts.
        problems: For a thought model, the questions in words.
    """
    if model.kind is THOUGHTS:
        if task is None:
            raise ValueError("answers of a model that thinks needs the questions' task")
        return said_answers(thought_model(model), worded_task(task), problems)
    return loop_answers(depth_model(model), batch, n_loops)


def loop_answers(model: CanLoop, batch: Batch, n_loops: int | None = None) -> Answers:
    """Compute the answers of a looped model after each loop."""
    logits = _by_loop(model, batch, n_loops)
    share = logits.float().softmax(-1)
    words = model.answers or tuple(map(str, range(logits.shape[-1])))
    top, best = share[:, 0].max(-1)
    return Answers(
        probability=_of(share, batch.answer),
        right=(logits.argmax(-1) == batch.answer).cpu(),
        likeliest=logits.argmax(-1).cpu(),
        untrained=_of(
            _by_loop(model.untrained(), batch, n_loops).float().softmax(-1), batch.answer
        ),
        said=tuple((words[int(w)], float(p)) for w, p in zip(best, top, strict=True)),
        true=words[int(batch.answer[0])],
    )


def _by_loop(
    model: CanLoop, batch: Batch, n_loops: int | None
) -> Float[Tensor, "loop question answer"]:
    found = [
        model(**rows.inputs, n_loops=n_loops, every_loop=True, logits_at=rows.read_at)
        for rows in in_parts(model, batch)
    ]
    return torch.cat(found, dim=1)


def _of(share: Float[Tensor, "loop question answer"], answer: Tensor) -> Tensor:
    wanted = answer.expand(len(share), -1)[..., None]
    return share.gather(-1, wanted)[..., 0].cpu()
