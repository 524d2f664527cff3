"""What kind of path through a ProsQA graph is said in words (CoCoNuT, arXiv 2412.06769, 5.2).

Thoughts may stand for the first steps, so that a path may begin anywhere that the root leads to;
it is a shortest one if the way to its beginning and its own steps together are as few as can be.
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
    """The steps in what is said before an answer, in either wording; None if one cannot be read."""
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
    """Which of `CLASSES` the words before an answer belong to.

    correct path       leads to the target, as short as can be
    longer path        leads to the target, with more steps than it takes
    wrong target       all its edges are there, and it leads elsewhere
    hallucinated edge  an edge is not there, or the path begins where the root does not lead, or
                       breaks off and begins anew
    unreadable         the words are no steps
    correct label      nothing but the right answer is said
    incorrect label    nothing but another answer, or none

    Args:
        graph: The graph of the question.
        said: The words before the mark of an answer.
        is_right: Whether the answer after it is right.
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
    """The nodes of some steps; None unless the root leads there and they follow on each other."""
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
