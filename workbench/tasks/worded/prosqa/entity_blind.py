"""Features of a ProsQA graph that may predict the answer without using the person in question."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from workbench.tasks.worded.prosqa.concept_graph import Graph, children, distances, parents

FAR = 100  # more than the number of nodes, so that all ancestors are included

Counts = dict[str, int]


def entity_blind_features(graphs: Sequence[Graph]) -> dict[str, Int[np.ndarray, " graph"]]:
    """Return differences in features between the concept named first and the other concept.

    A guess predicts `target_first` from them. Without the root, only such numbers are available.
    "parents" counts the concept's parents, "ancestors" all nodes from which it can be reached, and
    "people" the ancestors without parents.
    """
    rows = [_differences(graph) for graph in graphs]
    return {name: np.array([row[name] for row in rows]) for name in FEATURES}


def target_first(graphs: Sequence[Graph]) -> Bool[np.ndarray, " graph"]:
    """Return whether the question names the target first; guesses predict this label."""
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
