"""The graph of a ProsQA question, and its distances, paths and frontiers.

An edge a → b states that a is a b. Nodes without parents are people, all others are concepts. The
question names a person, the root, and two concepts. The target is the concept that can be reached
from the root. The wrong concept descends from another person, the other root.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

Edge = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph, with the person and the concepts of the question."""

    names: tuple[str, ...]
    """The word for each node; nodes are numbered from 0."""
    edges: tuple[Edge, ...]
    """Edges, in the order in which the question states them."""
    root: int
    other_root: int
    target: int
    wrong: int
    target_first: bool
    """Whether the question names the target before the wrong concept."""

    @property
    def hops(self) -> int:
        """Number of edges on a shortest path from the root to the target."""
        return distances(self.root, children(self))[self.target]

    @property
    def people(self) -> frozenset[int]:
        """The nodes that are people: those without parents."""
        return frozenset(range(len(self.names))) - {b for _, b in self.edges}


def children(graph: Graph) -> dict[int, list[int]]:
    """Return the children of each node, in the order stated."""
    found: dict[int, list[int]] = {node: [] for node in range(len(graph.names))}
    for a, b in graph.edges:
        found[a].append(b)
    return found


def parents(graph: Graph) -> dict[int, list[int]]:
    """Return the parents of each node, in the order stated."""
    found: dict[int, list[int]] = {node: [] for node in range(len(graph.names))}
    for a, b in graph.edges:
        found[b].append(a)
    return found


def distances(start: int, following: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """Return the length of a shortest path from a node to each reachable node, nearest first."""
    found = {start: 0}
    queue = [start]
    for node in queue:
        for after in following[node]:
            if after not in found:
                found[after] = found[node] + 1
                queue.append(after)
    return found


def shortest_path(graph: Graph) -> tuple[int, ...]:
    """Return the nodes of a shortest path from root to target; ties go to edges stated first."""
    left = distances(graph.target, parents(graph))
    following = children(graph)
    path = [graph.root]
    while path[-1] != graph.target:
        steps = left[path[-1]] - 1
        path.append(next(node for node in following[path[-1]] if left.get(node) == steps))
    return tuple(path)


def n_shortest_paths(graph: Graph) -> int:
    """Return the number of shortest paths from root to target."""
    before = parents(graph)
    ways = {graph.root: 1}
    steps = distances(graph.root, children(graph))
    for node, step in steps.items():
        if step:
            ways[node] = sum(ways[a] for a in before[node] if steps.get(a) == step - 1)
    return ways[graph.target]


def neighbours(graph: Graph) -> list[set[int]]:
    """Return, for each number of steps from the root, the nodes on a shortest path to the target.

    This corresponds to `neighbor_k` in the files of Zhu et al. 2025.
    """
    there, back = distances(graph.root, children(graph)), distances(graph.target, parents(graph))
    hops = there[graph.target]
    return [
        {n for n, step in there.items() if step == k and back.get(n) == hops - k}
        for k in range(hops + 1)
    ]


def frontier(graph: Graph) -> list[set[int]]:
    """Return all nodes at each distance from the root, up to the distance of the target."""
    steps = distances(graph.root, children(graph))
    return [{n for n, step in steps.items() if step == k} for k in range(graph.hops + 1)]


def renamed(
    graph: Graph, people: Sequence[str], concepts: Sequence[str], draw: np.random.Generator
) -> Graph:
    """Return the graph with other words, drawn without replacement.

    Args:
        graph: The graph.
        people: Words for its people.
        concepts: Words for all other nodes.
        draw: Random generator that draws the words.

    Raises:
        ValueError: There are fewer words than nodes.
    """
    persons = sorted(graph.people)
    others = sorted(frozenset(range(len(graph.names))) - graph.people)
    if len(persons) > len(people) or len(others) > len(concepts):
        raise ValueError(
            f"{len(persons)} people and {len(others)} concepts are more than the {len(people)} and "
            f"{len(concepts)} that there are words for"
        )
    names = [""] * len(graph.names)
    for nodes, words in ((persons, people), (others, concepts)):
        for node, word in zip(nodes, draw.permutation(len(words)).tolist(), strict=False):
            names[node] = words[word]
    return replace(graph, names=tuple(names))


def swapped(graph: Graph) -> Graph:
    """Return the question about the other root, with the same candidates: the answer flips.

    All words but one stay the same. The path may be longer or shorter than before, unless the
    candidates are matched. Swapping twice restores the original.
    """
    return replace(
        graph,
        root=graph.other_root,
        other_root=graph.root,
        target=graph.wrong,
        wrong=graph.target,
        target_first=not graph.target_first,
    )
