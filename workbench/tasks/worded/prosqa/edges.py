"""Random graphs of ProsQA's algorithm, drawn in batches, and counts along their edges.

The algorithm (Hao et al. 2024, appendix A.2, algorithm 1) starts from two roots, nodes 0 and 1.
Each further node gets Poisson(1.5) parents among the nodes before it, with weights 1.5·depth + 1. A
node's label is the root that it descends from: 1, 2, both (3) or neither (0). Some nodes draw their
parents from nodes that descend only from the first root, some from nodes that descend only from the
second, the rest from all.

The algorithm as printed does not reproduce the statistics of the official files (22.8 nodes, 36.3
edges, 2.5 people). `FILE` reproduces them if 28 nodes are drawn and those without edges are left
out. Its changes are inferred from the 300 official validation graphs. Of the parent distributions
tried, the likeliest has shares of .35, .65·.7 and .65·.3 for the three kinds of nodes, as if drawn
twice, and allows unlabelled nodes as parents only for the last kind. In all 300 graphs the target
is the furthest leaf that descends from only one of the two roots. `PRINTED` is as printed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

FAR = 100  # stands for no path; larger than the number of nodes
MOST_NODES = 60  # a set of nodes is stored as the bits of one number

Edges = Bool[np.ndarray, "graph node node"]
Nodes = Int[np.ndarray, "graph node"]
Rows = Int[np.ndarray, " graph"]


class Law(NamedTuple):
    """Distribution of parents and targets."""

    shares: tuple[float, float]
    """Shares of nodes whose parents descend only from the first root, and only from the second."""
    unlabelled: bool
    """Whether descendants of neither root may be parents of those nodes too."""
    furthest: bool
    """Whether the target is the furthest leaf of either root; otherwise it is any leaf."""


FILE = Law((0.35, 0.65 * 0.7), unlabelled=False, furthest=True)
PRINTED = Law((0.35, 0.35), unlabelled=True, furthest=False)
LAWS = {"file": FILE, "printed": PRINTED}


def draw_edges(
    rng: np.random.Generator, n: int, n_nodes: int, law: Law
) -> tuple[Edges, Int[np.ndarray, "graph node"]]:
    """Draw the edges of random graphs, u → v at [graph, u, v] with u < v, and the node labels."""
    edges = np.zeros((n, n_nodes, n_nodes), dtype=bool)
    label = np.zeros((n, n_nodes), dtype=np.int64)
    depth = np.zeros((n, n_nodes), dtype=np.int64)  # distance from the nearest node without parents
    label[:, 0], label[:, 1] = 1, 2
    first, second = law.shares
    for node in range(2, n_nodes):
        count, kind = rng.poisson(1.5, n), rng.random(n)
        known = label[:, :node]
        own = np.where(kind < first, 1, 2)[:, None]
        open_to_all = (kind >= first + second)[:, None]
        allowed = open_to_all | (known == own) | (law.unlabelled & (known == 0))
        chosen = _chosen(rng, count, allowed, 1.5 * depth[:, :node] + 1)
        edges[:, :node, node] = chosen
        label[:, node] = np.bitwise_or.reduce(np.where(chosen, known, 0), axis=1)
        nearest_parent = np.where(chosen, depth[:, :node], FAR).min(1)
        depth[:, node] = np.where(chosen.any(1), nearest_parent + 1, 0)
    return edges, label


def _chosen(
    rng: np.random.Generator,
    count: Rows,
    allowed: Bool[np.ndarray, "graph node"],
    weight: Float[np.ndarray, "graph node"],
) -> Bool[np.ndarray, "graph node"]:
    """Draw `count` of the allowed nodes by weight, without replacement.

    Taking the shortest of exponential waiting times, with rates proportional to the weights, is
    equivalent to such a draw (Efraimidis and Spirakis 2006).
    """
    wait = np.where(allowed, rng.standard_exponential(allowed.shape) / weight, np.inf)
    ordered = np.sort(wait, axis=1)
    last = np.minimum(count, wait.shape[1]) - 1
    longest = np.take_along_axis(ordered, np.maximum(last, 0)[:, None], 1)
    return allowed & (wait <= longest) & (count > 0)[:, None]


def root_steps(edges: Edges) -> Int[np.ndarray, "2 graph node"]:
    """Return the length of a shortest path from each root to each node; `FAR` without a path."""
    steps = np.full((2, *edges.shape[:2]), FAR)
    steps[[0, 1], :, [0, 1]] = 0
    for node in range(2, edges.shape[1]):
        before = np.where(edges[:, :node, node], steps[:, :, :node], FAR)
        steps[:, :, node] = np.minimum(before.min(2) + 1, FAR)
    return steps


def ancestor_counts(edges: Edges) -> Iterator[Nodes]:
    """Yield the number of ancestors of each node within 1, 2 and 3 steps, and in total."""
    bit = np.int64(1) << np.arange(edges.shape[1])
    within = np.zeros((4, *edges.shape[:2]), dtype=np.int64)  # sets of nodes as bits
    for node in range(2, edges.shape[1]):
        parent = edges[:, :node, node]
        # Ancestors within k steps are the parents and the parents' ancestors within k - 1 steps
        more = np.concatenate((np.zeros_like(within[:1]), within[:2], within[3:]))[..., :node]
        found = np.where(parent, bit[:node] | more, 0)
        within[..., node] = np.bitwise_or.reduce(found, axis=2)
    for sets in within:
        digits = np.unpackbits(np.ascontiguousarray(sets).view(np.uint8), axis=1)
        yield digits.reshape(*sets.shape, 64).sum(2, dtype=np.int64)
