"""Which root and which two leaves of a random graph a ProsQA question asks about.

    paper     by the law of the graph the target is the furthest leaf from its root that either
              root has alone, or any; the wrong concept is any leaf of the other root alone. Target
              and wrong concept differ in how many ancestors they have, so that most questions can
              be answered without looking at who is asked about.
    matched   the descendants of one root alone are joined with those of a root of another graph
              whose furthest leaf looks alike: as far from its root, with as many parents, ancestors
              within 2 and 3 steps and ancestors in all. Nodes that may descend from both follow, as
              many as the first graph has; no more nodes in all than a graph is drawn with. Which
              leaf is the target is decided by a coin after all else is drawn, so that nothing that
              leaves the root out of account tells it.

Nodes without edges are still among the nodes here.
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

RADIX = 64  # more than any count of nodes


class Asked(NamedTuple):
    """One graph with numbered nodes; nodes 0 and 1 are the roots."""

    edges: Bool[np.ndarray, "node node"]
    root: int
    target: int
    wrong: int


class Found(NamedTuple):
    """A graph with something to ask; making it whole is put off until it is wanted."""

    hops: int
    make: Callable[[], Asked]


class Half(NamedTuple):
    """One root with the nodes that descend from it alone."""

    graph: int
    label: int
    leaf: int


def ask_paper(rng: np.random.Generator, n: int, n_nodes: int, law: Law) -> Iterator[Found]:
    """What can be asked of n random graphs; those without a leaf of either root give nothing."""
    edges, label = draw_edges(rng, n, n_nodes, law)
    row, leaf, steps = np.arange(n), _leaves(edges), root_steps(edges)
    alone = np.stack([leaf & (label == 1), leaf & (label == 2)])  # [root graph node]
    far = np.where(alone, steps, 0).max(2) * law.furthest
    root = (far + rng.random(far.shape)).argmax(0)  # of equals, any
    own, other = alone[root, row], alone[1 - root, row]
    target = np.where(own, steps[root, row] * law.furthest + rng.random(own.shape), -1).argmax(1)
    wrong = np.where(other, rng.random(own.shape), -1).argmax(1)
    for i in np.flatnonzero(own.any(1) & other.any(1)).tolist():
        asked = Asked(edges[i], int(root[i]), int(target[i]), int(wrong[i]))
        yield Found(int(steps[root[i], i, target[i]]), partial(Asked, *asked))


def ask_matched(rng: np.random.Generator, n: int, n_nodes: int, law: Law) -> Iterator[Found]:
    """What can be asked of graphs joined from the halves of n random ones."""
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
    """The nodes without children; the roots do not count."""
    leaf: Bool[np.ndarray, "graph node"] = ~np.asarray(edges.any(2))
    leaf[:, :2] = False
    return leaf


def _pairs(rng: np.random.Generator, looks: Int[np.ndarray, "half look"]) -> Iterator[list[int]]:
    """Pairs of rows that are equal, none of them in two pairs."""
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
    """Two halves in one graph, with other people and nodes that may descend from both."""
    own = [np.flatnonzero(label[half.graph] == half.label) for half in pair]
    # Roots first, then the nodes of both in a random order that keeps that of each
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
    """How many nodes besides the roots have children and no parents."""
    people = ~np.asarray(edges.any(1)) & edges.any(2)
    return np.asarray(people[:, 2:].sum(1))


def _add(
    rng: np.random.Generator,
    edges: Bool[np.ndarray, "node node"],
    n_halves: int,
    n_people: int,
    leaves: list[int],
) -> None:
    """Give the nodes after the halves and the other people their parents, by the usual weights.

    The two leaves stay leaves. The first of these nodes has all other people among its parents.
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
