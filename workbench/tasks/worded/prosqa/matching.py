"""Chooses the root and the two leaves of a random graph that a ProsQA question asks about.

    paper     The target is a leaf that descends from only one root: the one furthest from its root,
              or any, depending on the graph's `Law`. The wrong concept is any leaf that descends
              only from the other root. Target and wrong concept differ in their numbers of
              ancestors, so that most questions can be answered without looking at the person.
    matched   The nodes that descend only from one root are joined with those of a root of another
              graph whose furthest leaf looks alike: it has the same distance from its root and the
              same numbers of parents, of ancestors within 2 and 3 steps, and of ancestors in total.
              Nodes that may descend from both follow, as many as in the first graph. The total may
              not exceed the number of nodes that a graph is drawn with. A coin flip decides which
              leaf is the target after everything else is drawn, so that no feature that ignores
              the root predicts it.

Nodes without edges are not yet removed here.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from workbench.tasks.worded.prosqa.edges import (
    Edges,
    Law,
    Nodes,
    ancestor_counts,
    draw_edges,
    root_steps,
)

RADIX = 64  # larger than any number of nodes


class Asked(NamedTuple):
    """One graph with numbered nodes; nodes 0 and 1 are the roots."""

    edges: Bool[np.ndarray, "node node"]
    root: int
    target: int
    wrong: int


class Found(NamedTuple):
    """A graph that allows a question; `make` builds it when it is needed."""

    hops: int
    make: Callable[[], Asked]


class Half(NamedTuple):
    """One root with the nodes that descend only from it."""

    graph: int
    label: int
    leaf: int


def ask_paper(rng: np.random.Generator, n: int, n_nodes: int, law: Law) -> Iterator[Found]:
    """Yield questions on n random graphs, skipping those in which a root has no leaf of its own."""
    edges, label = draw_edges(rng, n, n_nodes, law)
    row, leaf, steps = np.arange(n), _leaves(edges), root_steps(edges)
    alone = np.stack([leaf & (label == 1), leaf & (label == 2)])  # [root graph node]
    far = np.where(alone, steps, 0).max(2) * law.furthest
    root = (far + rng.random(far.shape)).argmax(0)  # ties are broken at random
    own, other = alone[root, row], alone[1 - root, row]
    target = np.where(own, steps[root, row] * law.furthest + rng.random(own.shape), -1).argmax(1)
    wrong = np.where(other, rng.random(own.shape), -1).argmax(1)
    for i in np.flatnonzero(own.any(1) & other.any(1)).tolist():
        asked = Asked(edges[i], int(root[i]), int(target[i]), int(wrong[i]))
        yield Found(int(steps[root[i], i, target[i]]), partial(Asked, *asked))


def ask_matched(rng: np.random.Generator, n: int, n_nodes: int, law: Law) -> Iterator[Found]:
    """Yield questions on graphs joined from the halves of n random graphs."""
    edges, label = draw_edges(rng, n, n_nodes, law)
    inside = edges & (label[:, :, None] == label[:, None, :])
    steps = root_steps(inside)
    counts = np.stack(list(ancestor_counts(inside)), -1)  # [graph node 4]
    halves, looks = [], []
    for side in (0, 1):
        own = _leaves(inside) & (label == side + 1)
        leaf = np.where(own, steps[side] + rng.random(own.shape), -1).argmax(1)
        row = np.flatnonzero(own.any(1))
        leaf = leaf[row]
        halves += [
            Half(graph, side + 1, node)
            for graph, node in zip(row.tolist(), leaf.tolist(), strict=True)
        ]
        looks.append(np.column_stack((steps[side, row, leaf], counts[row, leaf])))
    look = np.concatenate(looks)
    size = [(label == number).sum(1).tolist() for number in range(4)]  # of each label, by graph
    people = _other_people(edges).tolist()
    for pair in _pairs(rng, look):
        one, other = (halves[number] for number in pair)
        others = (people[one.graph], size[3][one.graph])
        if size[one.label][one.graph] + size[other.label][other.graph] + sum(others) <= n_nodes:
            make = partial(_joined, rng, inside, label, (one, other), others)
            yield Found(int(look[pair[0], 0]), make)


ASK = {"paper": ask_paper, "matched": ask_matched}


def _leaves(edges: Edges) -> Bool[np.ndarray, "graph node"]:
    """Return a mask of the nodes without children, not counting the roots."""
    leaf: Bool[np.ndarray, "graph node"] = ~np.asarray(edges.any(2))
    leaf[:, :2] = False
    return leaf


def _pairs(rng: np.random.Generator, looks: Int[np.ndarray, "half look"]) -> Iterator[list[int]]:
    """Yield pairs of equal rows, using each row at most once."""
    key = looks @ RADIX ** np.arange(looks.shape[1])
    mixed = rng.permutation(len(key))
    mixed = mixed[key[mixed].argsort(kind="stable")]
    place = 0
    pairs = []
    while place + 1 < len(mixed):
        pair = mixed[place : place + 2]
        alike = key[pair[0]] == key[pair[1]]
        if alike:
            pairs.append(pair.tolist())
        place += 1 + int(alike)
    yield from (pairs[i] for i in rng.permutation(len(pairs)))


def _joined(
    rng: np.random.Generator,
    inside: Edges,
    label: Nodes,
    pair: tuple[Half, Half],
    others: tuple[int, int],
) -> Asked:
    """Join two halves in one graph, with other people and nodes that may descend from both."""
    own = [np.flatnonzero(label[half.graph] == half.label) for half in pair]
    # Roots first, then the nodes of both halves, shuffled but in order within each half
    turn = rng.permutation(np.repeat([0, 1], [len(nodes) - 1 for nodes in own]))
    side = np.concatenate(([0, 1], turn))
    whole = np.zeros((len(side) + sum(others),) * 2, dtype=bool)
    leaves = []
    for number, (half, nodes) in enumerate(zip(pair, own, strict=True)):
        place = np.flatnonzero(side == number)
        whole[np.ix_(place, place)] = inside[half.graph][np.ix_(nodes, nodes)]
        leaves.append(int(place[np.searchsorted(nodes, half.leaf)]))
    _add(rng, whole, len(side), others[0], leaves)
    root = int(rng.integers(2))
    return Asked(whole, root, leaves[root], leaves[1 - root])


def _other_people(edges: Edges) -> Int[np.ndarray, " graph"]:
    """Count the nodes besides the roots that have children and no parents."""
    people = ~np.asarray(edges.any(1)) & edges.any(2)
    return np.asarray(people[:, 2:].sum(1))


def _add(
    rng: np.random.Generator,
    edges: Bool[np.ndarray, "node node"],
    n_halves: int,
    n_people: int,
    leaves: list[int],
) -> None:
    """Draw parents for the nodes after the halves and the other people, by the usual weights.

    The two leaves get no children. The first of these nodes has all other people among its parents.
    """
    first = n_halves + n_people
    depth = np.zeros(len(edges), dtype=np.int64)
    depth[:n_halves] = root_steps(edges[None, :n_halves, :n_halves]).min(0)[0]
    for node in range(first, len(edges)):
        weight = 1.5 * depth[:node] + 1
        weight[leaves] = 0
        count = min(max(int(rng.poisson(1.5)), 2), node - len(leaves))
        chosen = rng.choice(node, count, replace=False, p=weight / weight.sum())
        edges[chosen, node] = True
        depth[node] = depth[chosen].min() + 1
    if first < len(edges):
        edges[n_halves:first, first] = True
