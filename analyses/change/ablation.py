"""Which parts of the recurrence do right answers depend on? Each is ablated at inference.

A gate is shut at inference in a model that was trained with it open. The loss of accuracy shows
what the trained model relies on, not what a model trained without the gate would lack. To measure
the latter, train with `model: {family: agclr, shut: [read]}` and compare the runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.paired import difference, holm, probabilities
from analyses.kit.result import Result
from analyses.read.thought_answers import (
    HooksOfRows,
    mean_row,
    of_another_row,
    put_thoughts,
    said_under,
    unchanged,
)
from analyses.read.thought_states import STREAM, THOUGHT, thought_states
from workbench.capabilities import CanThink
from workbench.hooks import AtLoop, HookFn, HookPoint, at_loop, loop_of
from workbench.recurrence.concept_stream import SHUT
from workbench.runs.evaluation import wilson
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

GATES = ("read", "forget", "write")
SHARES = {"zero": 0.0, "published": float(torch.tensor(SHUT).sigmoid())}


@dataclass(frozen=True, eq=False)
class Condition:
    """One ablation, with its hooks."""

    group: str
    name: str
    hooks: HooksOfRows


@dataclass(frozen=True, eq=False)
class Ablation(Result):
    """Accuracy under each ablation and of the unchanged model, on the same questions.

    There are two controls. Replacing every thought by itself should change nothing. `floor` is the
    accuracy of always giving the commonest answer; it is None if the questions are not of a split.
    """

    right: Bool[Tensor, "condition question"]
    right_as_is: Bool[Tensor, " question"]
    change: Float[Tensor, "condition ends"]
    """Accuracy under ablation minus unchanged accuracy: mean, low and high end of 95 % interval."""
    p_value: Float[Tensor, " condition"]
    """Exact and two-sided (McNemar)."""
    p_holm: Float[Tensor, " condition"]
    """P-values corrected for testing all conditions except the control (Holm)."""
    groups: tuple[str, ...]
    names: tuple[str, ...]
    floor: float | None

    @property
    def accuracy(self) -> Float[Tensor, " condition"]:
        """Share of right answers under each condition."""
        return self.right.float().mean(1)

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        n = len(self.right_as_is)
        low, high = wilson(int(self.right_as_is.sum()), n)
        first = {"group": "as it is", "condition": "no edit"}
        rows: list[dict[str, object]] = [
            first | {"accuracy": float(self.right_as_is.float().mean()), "low": low, "high": high}
        ]
        for i, ends in enumerate(self.change.tolist()):
            low, high = wilson(int(self.right[i].sum()), n)
            accuracy = {"accuracy": float(self.accuracy[i]), "low": low, "high": high}
            change: dict[str, object] = dict(
                zip(("difference", "difference_low", "difference_high"), ends, strict=True)
            )
            change |= {"p_value": float(self.p_value[i]), "p_holm": float(self.p_holm[i])}
            change["gained"] = int((self.right[i] & ~self.right_as_is).sum())
            change["lost"] = int((~self.right[i] & self.right_as_is).sum())
            rows.append({"group": self.groups[i], "condition": self.names[i]} | accuracy | change)
        return pd.DataFrame(rows).assign(n=n)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, styled

        figure = go.Figure()
        kinds = list(dict.fromkeys(self.groups))
        for number, group in enumerate(kinds):
            chosen = [i for i, name in enumerate(self.groups) if name == group]
            mean, low, high = self.change[chosen].T
            bars = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
            colour = CONTROL if group == "control" else COLOURS[(number - 1) % len(COLOURS)]
            figure.add_scatter(
                x=mean.tolist(),
                y=[self.names[i] for i in chosen],
                mode="markers",
                name=group,
                marker={"color": colour, "size": 9},
                error_x=bars | {"type": "data"},
                customdata=[(float(self.accuracy[i]), float(self.p_value[i])) for i in chosen],
                hovertemplate="%{y}: %{x:+.3f}, accuracy %{customdata[0]:.3f}, "
                "p=%{customdata[1]:.3g}<extra></extra>",
            )
        figure.add_vline(x=0, line={"color": CONTROL, "width": 1})
        base = float(self.right_as_is.float().mean())
        if self.floor is not None:
            figure.add_vline(x=self.floor - base, line={"color": CONTROL, "dash": "dot"})
        figure.update_yaxes(autorange="reversed", categoryorder="array", type="category")
        figure.update_yaxes(categoryarray=list(self.names), automargin=True, dtick=1)
        figure.update_xaxes(title="change of accuracy; bars: 95 % over questions", zeroline=False)
        dotted = "" if self.floor is None else "; dotted: commonest answer"
        title = f"What right answers depend on: accuracy {base:.3f} as it is{dotted}"
        return styled(figure, title, 220 + 22 * len(self.names))

    def summary(self) -> str:
        n = len(self.right_as_is)
        base = float(self.right_as_is.float().mean())
        judged = [i for i, group in enumerate(self.groups) if group != "control"]
        worst = sorted(judged, key=lambda i: float(self.change[i, 0]))[:3]
        parts = [f"{self.names[i]} {self.accuracy[i]:.3f} (p={self.p_value[i]:.2g})" for i in worst]
        control = float(self.accuracy[self.groups.index("control")])
        return (
            f"accuracy {base:.3f} as it is, {control:.3f} with its own thoughts put back; "
            f"lowest of {len(judged)} ablations: {', '.join(parts)}; n={n}"
        )


@analysis(given=("task", "problems", "split"), example=Example(run="thoughts", n=4))
def ablation(
    model: CanThink,
    batch: WordedBatch,
    *,
    task: WordedTask,
    problems: list[Problem],
    split: str | None = None,
    shut: Literal["zero", "published"] = "zero",
) -> Ablation:
    """Measure accuracy with gates shut, the stream frozen, and thoughts removed or exchanged.

    Args:
        model: A thought model; hooks that are active on it apply in all conditions.
        batch: The questions.
        task: The task; it gives the scoring rules and the vocabulary.
        problems: The problems of the questions.
        split: Name of the questions' split.
        shut: What a shut gate lets through: nothing, or σ(−10) as published.

    Raises:
        ValueError: No question has a thought.
    """
    values = thought_states(model, batch, [THOUGHT])[THOUGHT]
    conditions = list(_conditions(model, values, SHARES[shut]))

    def right(hooks: HooksOfRows) -> Tensor:
        said = said_under(model, task, batch, hooks)
        scores = [task.score(p, answer) for p, answer in zip(problems, said, strict=True)]
        return torch.tensor([score.right for score in scores])

    as_is = right(unchanged)
    under = torch.stack([right(condition.hooks) for condition in conditions])
    found = [difference(each, as_is) for each in under]
    judged = [i for i, condition in enumerate(conditions) if condition.group != "control"]
    p_holm = probabilities([torch.nan] * len(conditions))
    p_holm[judged] = probabilities(holm([found[i].p_value for i in judged]))
    return Ablation(
        right=under,
        right_as_is=as_is,
        change=torch.tensor([[each.mean, each.low, each.high] for each in found]),
        p_value=probabilities([each.p_value for each in found]),
        p_holm=p_holm,
        groups=tuple(condition.group for condition in conditions),
        names=tuple(condition.name for condition in conditions),
        floor=None if split is None else task.majority_rate(split),
    )


def _conditions(
    model: CanThink, values: Float[Tensor, "thought batch d_model"], share: float
) -> Iterator[Condition]:
    """Yield all conditions, the control first."""
    n = len(values)
    every = list(range(n))
    yield Condition("control", "own thoughts put back", put_thoughts(values, every))
    if STREAM in model.hook_dict:
        yield from _of_stream(n, share)
    puts = [("thought set to zero", torch.zeros_like(values))]
    if values.shape[1] > 1:
        puts.append(("thought of another question", of_another_row(values)))
        puts.append(("mean thought", mean_row(values)))
    for group, instead in puts:
        for thought in every:
            name = f"thought {thought + 1}: {group.removeprefix('thought ')}"
            yield Condition(group, name, put_thoughts(instead, [thought]))
        if n > 1:
            name = f"all thoughts: {group.removeprefix('thought ')}"
            yield Condition(group, name, put_thoughts(instead, every))


def _of_stream(n: int, share: float) -> Iterator[Condition]:
    """Yield the stream's conditions: gates shut, write frozen and stream held after k thoughts."""
    for gate in GATES:
        yield Condition("gate shut", f"{gate} shut", _shut([gate], share, range(n)))
    yield Condition("gate shut", "all gates shut", _shut(GATES, share, range(n)))
    for k in range(1, n):
        # The paper's freeze uses exactly 0, whatever a shut gate lets through; the norm still acts
        name = f"write frozen after {_thoughts(k)}"
        yield Condition("write frozen", name, _shut(["write"], 0.0, range(k, n)))
    for k in range(1, n):
        yield Condition("stream held", f"stream held after {_thoughts(k)}", _held(k))


def _thoughts(n: int) -> str:
    return "1 thought" if n == 1 else f"{n} thoughts"


def _shut(gates: "list[str] | tuple[str, ...]", share: float, thoughts: range) -> HooksOfRows:
    """Build hooks that set some gates to one small share in all channels at some thoughts."""

    def hooks(rows: slice) -> list[tuple[str, HookFn | AtLoop]]:
        def put(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            return torch.full_like(tensor, share)

        return [(f"recurrence.{gate}.hook_post", at_loop(put, thoughts)) for gate in gates]

    return hooks


def _held(k: int) -> HooksOfRows:
    """Build hooks that keep the stream as it is after k thoughts."""

    def hooks(rows: slice) -> list[tuple[str, HookFn | AtLoop]]:
        held: list[Tensor] = []

        def hold(tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
            loop = loop_of(hook)
            assert loop is not None
            if loop == k - 1:
                held[:] = [tensor]
            return held[0] if loop >= k else None

        return [(STREAM, hold)]

    return hooks
