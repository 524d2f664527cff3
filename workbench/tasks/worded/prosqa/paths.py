"""Classifies the path through a ProsQA graph that a model states (CoCoNuT, arXiv 2412.06769, 5.2).

Thoughts may replace the first steps, so a stated path may begin at any node reachable from the
root. It counts as shortest if the distance from the root to its beginning plus its own steps equals
the length of a shortest path to the target.
"""

from collections.abc import Sequence

from workbench.tasks.worded.prosqa.concept_graph import Graph, children, distances
from workbench.tasks.worded.prosqa.parsing import FACT

CORRECT, LONGER, WRONG_TARGET = "correct path", "longer path", "wrong target"
HALLUCINATED, UNREADABLE = "hallucinated edge", "unreadable"
RIGHT_LABEL, WRONG_LABEL = "correct label", "incorrect label"
CLASSES = (
    CORRECT,
    LONGER,
    WRONG_TARGET,
    HALLUCINATED,
    UNREADABLE,
    RIGHT_LABEL,
    WRONG_LABEL,
)


def read_steps(said: str) -> list[tuple[str, str]] | None:
    """Parse the steps stated before an answer, in either wording; None if a step is unreadable."""
    *stated, rest = said.replace(".", " . ").split(" . ") if said.strip() else [""]
    steps = []
    for sentence in [*stated, *([rest] if rest.strip(" .") else [])]:
        plain = " ".join(sentence.split())
        fact = FACT.fullmatch(plain)
        pair = fact.groups() if fact else tuple(plain.split())
        if len(pair) != 2:
            return None
        steps.append((pair[0], pair[1]))
    return steps


def path_class(graph: Graph, said: str, is_right: bool) -> str:
    """Return which of `CLASSES` the words before an answer belong to.

    correct path       leads to the target in as few steps as possible
    longer path        leads to the target in more steps than necessary
    wrong target       all edges exist, but the path leads elsewhere
    hallucinated edge  an edge does not exist, or the path begins at a node not reachable from the
                       root, or breaks off and starts again
    unreadable         the words are not steps
    correct label      no steps, only the right answer
    incorrect label    no steps, and another answer or none

    Args:
        graph: The graph of the question.
        said: The words before the answer mark.
        is_right: Whether the answer after the mark is right.
    """
    steps = read_steps(said)
    if steps is None:
        return UNREADABLE
    if not steps:
        return RIGHT_LABEL if is_right else WRONG_LABEL
    path = _path(graph, steps)
    if path is None:
        return HALLUCINATED
    if path[-1] != graph.target:
        return WRONG_TARGET
    before = distances(graph.root, children(graph))[path[0]]
    return CORRECT if before + len(steps) == graph.hops else LONGER


def _path(graph: Graph, steps: Sequence[tuple[str, str]]) -> list[int] | None:
    """Return the nodes of the steps; None unless they form a path reachable from the root."""
    number = {name: node for node, name in enumerate(graph.names)}
    following = children(graph)
    reached = distances(graph.root, following)
    path = [number.get(steps[0][0], -1)]
    if path[0] not in reached:
        return None
    for a, b in steps:
        after = number.get(b, -1)
        if number.get(a) != path[-1] or after not in following[path[-1]]:
            return None
        path.append(after)
    return path
