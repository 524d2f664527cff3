"""Random graphs as ProsQA's algorithm draws them, many at once, and counts along their edges.

Two roots, nodes 0 and 1, are there first (Hao et al. 2024, appendix A.2, algorithm 1). Each further
node gets Poisson(1.5) parents among the nodes before it, with weights 1.5·depth + 1. A node's label
says from which of the two roots it descends: 1, 2, both (3) or neither (0). Some nodes draw their
parents from the first root's descendants alone, some from the second's alone, the rest from all.

The algorithm as printed does not give the statistics of the official files (22.8 nodes, 36.3 edges,
2.5 people). `FILE` does, with 28 nodes at first, of which those without any edge are left out. Its
departures are what the 300 official validation graphs show: of the ways that were tried to draw
their parents it is the likeliest that the shares of the three kinds are .35, .65·.7 and .65·.3, as
if drawn twice, and that nodes without label are parents only for the last kind; and in all 300 the
target is the furthest leaf that either root has alone. `PRINTED` is as printed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

FAR = 100  # stands for no way; more than there are nodes
MOST_NODES = 60  # sets of nodes are the bits of one number

Edges = Bool[np.ndarray, "graph node node"]
Nodes = Int[np.ndarray, "graph node"]
Rows = Int[np.ndarray, " graph"]


class Law(NamedTuple):
    """How parents and targets are drawn."""

    shares: tuple[float, float]
    """Share of nodes whose parents descend from the first root alone, from the second alone."""
    unlabelled: bool
    """Whether descendants of neither root may be parents of those nodes too."""
    furthest: bool
    """Whether the target is the furthest of both roots' leaves; otherwise it is any leaf."""


FILE = Law((0.35, 0.65 * 0.7), unlabelled=False, furthest=True)
PRINTED = Law((0.35, 0.35), unlabelled=True, furthest=False)
LAWS = {"file": FILE, "printed": PRINTED}


def draw_edges(
    rng: np.random.Generator, n: int, n_nodes: int, law: Law
) -> tuple[Edges, Int[np.ndarray, "graph node"]]:
    """Edges of random graphs, u → v at [graph, u, v] with u < v, and the labels of their nodes."""
    edges = np.zeros((n, n_nodes, n_nodes), dtype=bool)
    label = np.zeros((n, n_nodes), dtype=np.int64)
    depth = np.zeros((n, n_nodes), dtype=np.int64)  # edges from the nearest node without parents
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
    """So many of the nodes that are allowed, drawn one after another by weight.

    Of waiting times with rates in proportion to the weights, the shortest are such a draw
    (Efraimidis and Spirakis 2006).
    """
    wait = np.where(allowed, rng.standard_exponential(allowed.shape) / weight, np.inf)
    ordered = np.sort(wait, axis=1)
    last = np.minimum(count, wait.shape[1]) - 1
    longest = np.take_along_axis(ordered, np.maximum(last, 0)[:, None], 1)
    return allowed & (wait <= longest) & (count > 0)[:, None]


def root_steps(edges: Edges) -> Int[np.ndarray, "2 graph node"]:
    """Edges on the shortest way from each of the two roots to each node; `FAR` without a way."""
    steps = np.full((2, *edges.shape[:2]), FAR)
    steps[[0, 1], :, [0, 1]] = 0
    for node in range(2, edges.shape[1]):
        before = np.where(edges[:, :node, node], steps[:, :, :node], FAR)
        steps[:, :, node] = np.minimum(before.min(2) + 1, FAR)
    return steps


def ancestor_counts(edges: Edges) -> Iterator[Nodes]:
    """How many ancestors each node has within 1, 2 and 3 steps, and in all."""
    bit = np.int64(1) << np.arange(edges.shape[1])
    within = np.zeros((4, *edges.shape[:2]), dtype=np.int64)  # sets of nodes as bits
    for node in range(2, edges.shape[1]):
        parent = edges[:, :node, node]
        # Ancestors within k steps are the parents and theirs within k - 1
        more = np.concatenate((np.zeros_like(within[:1]), within[:2], within[3:]))[..., :node]
        found = np.where(parent, bit[:node] | more, 0)
        within[..., node] = np.bitwise_or.reduce(found, axis=2)
    for sets in within:
        digits = np.unpackbits(np.ascontiguousarray(sets).view(np.uint8), axis=1)
        yield digits.reshape(*sets.shape, 64).sum(2, dtype=np.int64)
