"""What the graph of a ProsQA question tells of its answer without looking at who is asked about."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from workbench.tasks.worded.prosqa.concept_graph import Graph, children, distances, parents

FAR = 100  # more steps than there are nodes: all ancestors

Counts = dict[str, int]


def entity_blind_features(graphs: Sequence[Graph]) -> dict[str, Int[np.ndarray, " graph"]]:
    """Differences between the concept that is named first in the question and the other.

    The rule to be learnt is `target_first`; without looking at the root, no more is known than
    these numbers and the like. "parents" counts those of the concept, "ancestors" all nodes from
    which it can be reached, "people" those of them without parents.
    """
    rows = [_differences(graph) for graph in graphs]
    return {name: np.array([row[name] for row in rows]) for name in FEATURES}


def target_first(graphs: Sequence[Graph]) -> Bool[np.ndarray, " graph"]:
    """Whether the question names the target before the wrong concept: what a guess has to tell."""
    return np.array([graph.target_first for graph in graphs], dtype=bool)


def _differences(graph: Graph) -> Counts:
    pair = (graph.target, graph.wrong) if graph.target_first else (graph.wrong, graph.target)
    before, after, people = parents(graph), children(graph), graph.people
    places = {b: number for number, (_, b) in reversed(list(enumerate(graph.edges)))}
    found = []
    for node in pair:
        steps = distances(node, before)
        found.append({name: count(steps, people) for name, count in COUNTS.items()})
        found[-1]["children"] = len(after[node])
        found[-1]["place of the first mention"] = places[node]
    return {name: found[0][name] - found[1][name] for name in FEATURES}


def _within(most: int) -> Callable[[dict[int, int], frozenset[int]], int]:
    return lambda steps, people: sum(0 < step <= most for step in steps.values())


def _of(people: frozenset[int], steps: dict[int, int]) -> list[int]:
    return [steps[person] for person in people if person in steps]


COUNTS: dict[str, Callable[[dict[int, int], frozenset[int]], int]] = {
    "parents": _within(1),
    "ancestors within 2": _within(2),
    "ancestors within 3": _within(3),
    "ancestors within 4": _within(4),
    "ancestors": _within(FAR),
    "people among the ancestors": lambda steps, people: len(people & steps.keys()),
    "steps from the nearest person": lambda steps, people: min(_of(people, steps)),
    "steps from the furthest person": lambda steps, people: max(_of(people, steps)),
}
FEATURES = (*COUNTS, "children", "place of the first mention")
