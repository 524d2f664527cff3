"""Do thoughts search a graph? Where the next step would lead after each number of thoughts.

Thinking is stopped after 0 to n thoughts, and the model continues in words (CoCoNuT, arXiv
2412.06769, 5.2 to 5.4). The value of a concept is the probability that the next step ends there,
renormalised over all nodes of the question's graph. With `part="start"` it is the probability that
the step begins there, which is what the paper's figures 5 to 8 show. A search that weighs several
paths at once spreads its mass over the nodes that are as many steps from the root as the thoughts
stand for. A search that has decided has all its mass on one node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.graphs.next_steps import NextSteps
from analyses.graphs.search_nodes import KINDS, SearchNodes, nodes_of
from analyses.kit.declare import Example, analysis
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.relaid import counts_of, relaid
from workbench.capabilities import CanThink
from workbench.instruments.speaking import speak
from workbench.runs.evaluation import wilson
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.prosqa import Prosqa
from workbench.tasks.worded.prosqa.concept_graph import Graph
from workbench.tasks.worded.prosqa.paths import CLASSES, path_class
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import ANSWER, WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

TOP = 3

PartOfThought = Literal["end", "start"]
MeanOf = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class ThoughtSearchTree(Result):
    """Values of next concepts after 0 to n thoughts, and the paths that are then written in words.

    The controls are an untrained twin and, for the mass of a kind of nodes, that kind's share of
    all nodes. Questions whose path has already ended are left out of the means. Means have
    bootstrap intervals over questions, and shares of paths have Wilson intervals.
    """

    value: Float[Tensor, "thought question node"]
    """Value of each node as the next concept; sums to 1 over the nodes; NaN for padding."""
    said: Float[Tensor, "thought question"]
    """Total probability of a step between two nodes, before renormalising."""
    top: Float[Tensor, "thought rank"]
    """Mean total mass of the 1, 2 and 3 likeliest nodes."""
    top_low: Float[Tensor, "thought rank"]
    top_high: Float[Tensor, "thought rank"]
    top_untrained: Float[Tensor, "thought rank"]
    mass: Float[Tensor, "thought kind"]
    """Mean mass of each kind of nodes."""
    mass_low: Float[Tensor, "thought kind"]
    mass_high: Float[Tensor, "thought kind"]
    mass_untrained: Float[Tensor, "thought kind"]
    mass_even: Float[Tensor, "thought kind"]
    """Mass of each kind if all nodes were equally likely: the kind's share of the nodes."""
    by_height: Float[Tensor, "right height"]
    """Mean value of the nodes that the next step can lead to, by edges to the nearest leaf: first
    for nodes off every shortest path to the target, then for nodes on one."""
    by_height_low: Float[Tensor, "right height"]
    by_height_high: Float[Tensor, "right height"]
    by_height_n: Int[Tensor, "right height"]
    paths: Float[Tensor, "thought path"]
    """Share of each class of paths among the outputs after each number of thoughts."""
    paths_low: Float[Tensor, "thought path"]
    paths_high: Float[Tensor, "thought path"]
    adjacency: Bool[Tensor, "own own"]
    """Edges of the first question's graph."""
    distance: Int[Tensor, " own"]
    """Edges from the root of that graph; −1 if unreachable."""
    right: Bool[Tensor, " own"]
    """Whether a node is on a shortest path from root to target."""
    names: tuple[str, ...]
    root: int
    target: int
    wrong: int
    words: tuple[str, ...]
    """Output for the first question after each number of thoughts."""
    part: str
    steps_replaced: tuple[int, ...]
    """Number of steps that each number of thoughts stands for."""
    n: int

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for k in range(len(self.value)):
            for what, labels, fields in (
                ("top", [f"top {r + 1}" for r in range(TOP)], ("top", "top_untrained")),
                ("nodes", KINDS, ("mass", "mass_untrained")),
                ("path", CLASSES, ("paths", None)),
            ):
                for i, label in enumerate(labels):
                    mean, control = fields
                    row = {"thoughts": k, "of": what, "kind": label}
                    row["mean"] = float(getattr(self, mean)[k, i])
                    row["low"] = float(getattr(self, f"{mean}_low")[k, i])
                    row["high"] = float(getattr(self, f"{mean}_high")[k, i])
                    row["untrained"] = float(getattr(self, control)[k, i]) if control else None
                    rows.append(row)
            for node, name in enumerate(self.names):
                value = float(self.value[k, 0, node])
                rows.append({"thoughts": k, "of": "first question", "kind": name, "mean": value})
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from analyses.graphs.search_figure import search_figure, tree_figure

        return tree_figure(self) if self.n == 1 else search_figure(self)

    def summary(self) -> str:
        last = len(self.value) - 1
        parts = []
        for k in sorted({0, min(1, last), last}):
            best = int(self.paths[k].argmax())
            parts.append(
                f"after {k}, {self._next(k)}; said: {CLASSES[best]} {self.paths[k, best]:.2f}, a "
                f"step {self.said[k].mean():.2g}"
            )
        return f"mass by number of thoughts: {' | '.join(parts)} (n={self.n})"

    def _next(self, k: int) -> str:
        """Describe where the next step would lead, if any question's path continues."""
        if not bool(self.mass[k, 0].isfinite()):
            return "no path goes on"
        right = _interval(self.mass[k, 0], self.mass_low[k, 0], self.mass_high[k, 0])
        untrained = f"{self.mass_untrained[k, 0]:.2f}"
        return (
            f"next on a shortest path {right} (untrained {untrained}), top 1 {self.top[k, 0]:.2f}"
        )


def _interval(mean: Tensor, low: Tensor, high: Tensor) -> str:
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


@analysis(given=("task", "problems"), example=Example(run="stages"))
@torch.no_grad()
def thought_search_tree(
    model: CanThink,
    batch: WordedBatch,
    *,
    task: WordedTask,
    problems: Sequence[Problem],
    part: PartOfThought = "end",
) -> ThoughtSearchTree:
    """Compute a model's next steps and outputs after 0 to all of its thoughts.

    Args:
        model: The model; active hooks apply.
        batch: ProsQA questions, laid out with the largest number of thoughts to examine; for a
            single question, the figure is its tree.
        task: The task of the questions.
        problems: The problems of the questions.
        part: Whether a node's value is the probability of the steps that end or begin there.

    Raises:
        ValueError: The task is not ProsQA.
    """
    if not isinstance(task, Prosqa):
        raise ValueError("only questions of prosqa have a graph that thoughts may search")
    graphs = [cast(Graph, problem.facts["graph"]) for problem in problems]
    done = [k // task.layout.thoughts_per_step for k in counts_of(task, problems)]
    nodes = nodes_of(graphs, [step + (part == "end") for step in done])
    steps, twin = NextSteps(task, graphs), model.untrained()
    raw, fresh, words = [], [], []
    for k in range(len(done)):
        rows = relaid(model, task, problems, task.layout.with_fillers(k))
        raw.append(steps.probabilities(model, rows).sum(1 if part == "end" else 2))
        fresh.append(steps.probabilities(twin, rows).sum(1 if part == "end" else 2))
        words.append(speak(model, task, rows))
    value = _renormalised(torch.stack(raw), nodes)
    return ThoughtSearchTree(
        value=value,
        said=torch.stack(raw).sum(-1),
        **_means(value, _renormalised(torch.stack(fresh), nodes), nodes),
        **_by_height(value, nodes),
        **_paths(task, problems, words),
        **nodes.of_first(),
        names=graphs[0].names,
        root=graphs[0].root,
        target=graphs[0].target,
        wrong=graphs[0].wrong,
        words=tuple(said[0] for said in words),
        part=part,
        steps_replaced=tuple(done),
        n=len(batch),
    )


def _renormalised(raw: Float[Tensor, "thought question node"], nodes: SearchNodes) -> Tensor:
    """Scale values so that they sum to 1 over the nodes; NaN where there is no node."""
    return (raw / raw.sum(-1, keepdim=True)).masked_fill(nodes.absent, torch.nan)


def _means(value: Tensor, fresh: Tensor, nodes: SearchNodes) -> MeanOf:
    """Average the mass of the likeliest nodes and of each kind, for the model and its twin."""
    found: MeanOf = {}
    for name, values in (("", value), ("_untrained", fresh)):
        ranked = values.nan_to_num(0.0).sort(dim=-1, descending=True).values[..., :TOP]
        top = _closed(ranked.cumsum(-1), nodes).movedim(1, -1)  # [thought rank question]
        mass = _closed(nodes.by_kind(values), nodes).movedim(1, -1)  # [thought kind question]
        for what, per_question in (("top", top), ("mass", mass)):
            mean, low, high = bootstrap(per_question)
            found[what + name] = mean
            if not name:
                found |= {f"{what}_low": low, f"{what}_high": high}
    shares = (~nodes.absent).float() / (~nodes.absent).sum(-1, keepdim=True)
    even = _closed(nodes.by_kind(shares.expand_as(value)), nodes)
    return found | {"mass_even": even.nanmean(1)}


def _closed(values: Float[Tensor, "thought question kind"], nodes: SearchNodes) -> Tensor:
    """Set the values of questions whose path has ended to NaN."""
    return values.masked_fill(~nodes.is_open[..., None], torch.nan)


def _by_height(value: Tensor, nodes: SearchNodes) -> MeanOf:
    """Average the value of the nodes that can be next, by height, off and on shortest paths."""
    means, lows, highs, counts = [], [], [], []
    for right in (False, True):
        wanted = nodes.frontier & (nodes.next_right == right) & nodes.is_open[..., None]
        for height in range(int(nodes.height.max()) + 1):
            chosen = value.where(wanted & (nodes.height == height), value.new_tensor(torch.nan))
            by_question = chosen.nanmean(-1).nanmean(0)  # a question counts once
            mean, low, high = bootstrap(by_question)
            means.append(mean)
            lows.append(low)
            highs.append(high)
            counts.append(by_question.isfinite().sum())
    found = dict(by_height=means, by_height_low=lows, by_height_high=highs, by_height_n=counts)
    return {name: torch.stack(parts).view(2, -1) for name, parts in found.items()}


def _paths(task: Prosqa, problems: Sequence[Problem], words: Sequence[Sequence[str]]) -> MeanOf:
    """Compute each path class's share after each number of thoughts, with Wilson intervals."""
    table = []
    for said in words:
        found = []
        for problem, text in zip(problems, said, strict=True):
            graph = cast(Graph, problem.facts["graph"])
            right = task.score(problem, task.answer_in(text)).right
            before = text.partition(ANSWER)[0]
            found.append(path_class(graph, before, right))
        n = len(found)
        counts = [found.count(name) for name in CLASSES]
        table.append([(count / n, *wilson(count, n)) for count in counts])
    share, low, high = torch.tensor(table).unbind(-1)
    return {"paths": share, "paths_low": low, "paths_high": high}
