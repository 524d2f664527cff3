"""Random directed graphs with a source and a target, in batches: VCoT's two generators and twins.

Nodes are numbered from 0 and padded to the widest graph; `edges[graph, u, v]` is the edge u → v.

*Reachable* graphs start from a path of exactly `hops` edges from source to target. Then random
edges between two of the n nodes are attempted; their number is drawn from n//2 … 2n. An attempt
that would create a shorter path is dropped. *Unreachable* graphs consist of the edges of as many
attempts. Their source and target are the first pair, in a shuffled order of the nodes, that no path
joins. This makes them easy to recognise: they have fewer edges, and often no edge leads out of the
source or into the target.

A *twin* is an unreachable graph made from a reachable one by one exchange: the middle edge a → b of
its path and an edge x → y elsewhere become a → y and x → b. Every node keeps its number of edges
in and out. Only twins that equal their graph in all `local_features` are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.tasks.batch import NONE

FAR = 50  # distance that stands for no path; sums of distances must fit into 8 bits
AT_ONCE = (512, 4_096)  # fewest and most graphs that are tried for a twin together
PER_TWIN = 32  # graphs tried for each twin that is still missing
TRIES = 400  # rounds in a row without any twin before giving up

Edges = Bool[np.ndarray, "graph node node"]
Places = Int[np.ndarray, " graph"]


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs with their number of nodes, and the source and target of each."""

    edges: Edges
    nodes: Places
    source: Places
    target: Places

    def __getitem__(self, rows: Places | Bool[np.ndarray, " graph"]) -> "Graphs":
        """Return some of the graphs."""
        return Graphs(self.edges[rows], self.nodes[rows], self.source[rows], self.target[rows])


def draw_reachable(
    rng: np.random.Generator, hops: Places, nodes: Places, wide: int
) -> tuple[Graphs, Int[np.ndarray, "graph node"]]:
    """Draw graphs whose target is `hops` edges from the source, and their nodes in path order."""
    row, node = np.arange(len(hops)), np.arange(wide)
    path = _orders(rng, nodes, wide)
    place = path.argsort(1).astype(np.int8)
    on_path = place <= hops[:, None]
    gap = place[:, None, :] - place[:, :, None]  # [graph from to]
    joined = on_path[:, :, None] & on_path[:, None, :] & (gap >= 0)
    edges = joined & (gap == 1)
    source, target = path[:, 0], path[row, hops]
    steps = np.where(joined | (gap == 0), gap, np.int8(FAR))
    steps = np.ascontiguousarray(steps.transpose(1, 2, 0))  # graphs last, which is faster in numpy
    by_edge = np.empty_like(steps)
    count, first, second = _attempts(rng, nodes)
    for attempt in range(count.max()):
        u, v = first[:, attempt], second[:, attempt]
        way = steps[source, u, row] + 1 + steps[v, target, row]
        made = (attempt < count) & (way >= hops)
        edges[row[made], u[made], v[made]] = True
        to_u = steps.take((node[:, None] * wide + u) * len(row) + row)  # [from graph]
        from_v = steps.take((v * wide + node[:, None]) * len(row) + row)  # [to graph]
        np.add(np.where(made, to_u + np.int8(1), np.int8(FAR))[:, None], from_v, out=by_edge)
        np.minimum(steps, by_edge, out=steps)
    return Graphs(edges, nodes, source, target), path


def draw_unreachable(rng: np.random.Generator, nodes: Places, wide: int) -> Graphs:
    """Draw graphs of random edges, and as source and target a pair that no path joins.

    The pair is the first one in a shuffled order of the nodes. A graph in which all pairs are
    joined is redrawn as two parts with no edges between them.
    """
    row = np.arange(len(nodes))
    count, first, second = _attempts(rng, nodes)
    edges = _with_edges(count, first, second, wide)
    order = _orders(rng, nodes, wide)
    joined = _joined(edges)[row[:, None, None], order[:, :, None], order[:, None, :]]
    places = np.arange(wide)
    apart = ~joined & (places[:, None] < places) & (places < nodes[:, None, None])
    pair = apart.reshape(len(row), -1).argmax(1)
    source, target = order[row, pair // wide], order[row, pair % wide]
    whole = row[~apart.any((1, 2))]
    if len(whole):
        parts = _two_parts(rng, count[whole], nodes[whole], order[whole])
        edges[whole], source[whole], target[whole] = parts.edges, parts.source, parts.target
    return Graphs(edges, nodes, source, target)


def draw_twins(
    rng: np.random.Generator, hops: Places, nodes: Places, wide: int
) -> tuple[Graphs, Graphs]:
    """Draw reachable graphs, each with an unreachable twin that has the same local features.

    Raises:
        ValueError: No graph with this number of hops and nodes seems to have a twin.
    """
    shape = (len(hops), wide, wide)
    edges, twin_edges = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    source, target = np.zeros_like(hops), np.zeros_like(hops)
    (least, most), wanted, idle = AT_ONCE, np.arange(len(hops)), 0
    while len(wanted):
        row = np.resize(wanted, max(len(wanted), min(max(PER_TWIN * len(wanted), least), most)))
        graphs, path = draw_reachable(rng, hops[row], nodes[row], wide)
        twins, fits = _exchanged(rng, graphs, path, hops[row])
        fits[fits] = _look_alike(graphs[fits], twins[fits])
        found, at = np.unique(row[fits], return_index=True)
        at = fits.nonzero()[0][at]
        edges[found], twin_edges[found] = graphs.edges[at], twins.edges[at]
        source[found], target[found] = graphs.source[at], graphs.target[at]
        wanted, idle = np.setdiff1d(wanted, found), 0 if len(found) else idle + 1
        if idle == TRIES:
            raise ValueError(
                f"no graph of {nodes[wanted[0]]} nodes with a path of {hops[wanted[0]]} hops has "
                "an unreachable twin with the same local features; more nodes leave more room"
            )
    return Graphs(edges, nodes, source, target), Graphs(twin_edges, nodes, source, target)


def path_lengths(edges: Edges, start: Places) -> Int[np.ndarray, "graph node"]:
    """Return the number of edges on a shortest path from `start` to each node; −1 without one."""
    found = np.full(edges.shape[:2], NONE)
    for step, nodes in enumerate(_spread(edges, start)):
        found[nodes] = step
    return found


def local_features(graphs: Graphs) -> dict[str, Int[np.ndarray, " graph"]]:
    """Return features from the neighbourhoods of source and target, and counts over each graph.

    No feature searches for a path from the source to the target.
    """
    edges, nodes, source, target = graphs.edges, graphs.nodes, graphs.source, graphs.target
    row = np.arange(len(nodes))
    near = _within_two(edges)
    exists = np.arange(edges.shape[1]) < nodes[:, None]
    found = {
        "nodes": nodes,
        "edges": edges.sum((1, 2)),
        "edges both ways": (edges & edges.transpose(0, 2, 1)).sum((1, 2)) // 2,
        "edge target → source": edges[row, target, source],
        "target → source within 2": near[row, target, source],
        "children of both": (edges[row, source] & edges[row, target]).sum(1),
        "parents of both": (edges[row, :, source] & edges[row, :, target]).sum(1),
    }
    for name, node in (("source", source), ("target", target)):
        found[f"children of {name}"] = edges[row, node].sum(1)
        found[f"parents of {name}"] = edges[row, :, node].sum(1)
        found[f"descendants of {name} within 2"] = near[row, node].sum(1)
        found[f"ancestors of {name} within 2"] = near[row, :, node].sum(1)
    for name, degree in (("parents", edges.sum(1)), ("children", edges.sum(2))):
        for number in range(3):
            found[f"nodes with {number} {name}"] = ((degree == number) & exists).sum(1)
    return {name: values.astype(np.int64) for name, values in found.items()}


def _exchanged(
    rng: np.random.Generator, graphs: Graphs, path: Int[np.ndarray, "graph node"], hops: Places
) -> tuple[Graphs, Bool[np.ndarray, " graph"]]:
    """Exchange the middle edge of each path; return the graphs, and which are now unreachable."""
    edges, source, target = graphs.edges, graphs.source, graphs.target
    row, node = np.arange(len(hops)), np.arange(edges.shape[1])
    middle = (hops - 1 + rng.integers(0, 2, len(hops))) // 2
    a, b = path[row, middle], path[row, middle + 1]
    left = edges.copy()
    left[row, a, b] = False
    below = _reached(left, source)
    above = _reached(left.transpose(0, 2, 1), target)
    # x is not below the source, y is not above the target, and a → y and x → b are not yet edges
    free = left & ~below[:, :, None] & ~above[:, None, :]
    free &= ~edges[row, a][:, None, :] & ~edges[row, :, b][:, :, None]
    free &= (node != a[:, None])[:, None, :] & (node != b[:, None])[:, :, None]
    free &= ~below[row, target][:, None, None]
    chance = np.where(free, rng.random(free.shape, dtype=np.float32), -1).reshape(len(row), -1)
    pick = chance.argmax(1)
    done = chance[row, pick] >= 0
    x, y = pick // edges.shape[1], pick % edges.shape[1]
    left[row[done], x[done], y[done]] = False
    left[row[done], a[done], y[done]] = True
    left[row[done], x[done], b[done]] = True
    done &= ~_reached(left, source)[row, target]
    return replace(graphs, edges=left), done


def _spread(edges: Edges, start: Places) -> Iterator[Bool[np.ndarray, "graph node"]]:
    """Yield the nodes first reached from `start` after 0, 1, 2 … edges."""
    # A set of nodes is stored as the bits of one number; a float holds 53 bits exactly
    bit = np.int64(1) << np.arange(edges.shape[1])
    children = (edges @ bit.astype(np.float64)).astype(np.int64).T  # [node graph]
    seen = new = bit[start]
    while new.any():
        held = (new & bit[:, None]) != 0  # [node graph]
        yield held.T
        new = np.bitwise_or.reduce(np.where(held, children, 0), axis=0) & ~seen
        seen = seen | new


def _reached(edges: Edges, start: Places) -> Bool[np.ndarray, "graph node"]:
    """Return a mask of the nodes that can be reached from `start`."""
    return np.logical_or.reduce(list(_spread(edges, start)))


def _look_alike(graphs: Graphs, twins: Graphs) -> Bool[np.ndarray, " graph"]:
    """Return which graphs and twins have all local features in common."""
    pairs = zip(local_features(graphs).values(), local_features(twins).values(), strict=True)
    return np.logical_and.reduce([one == other for one, other in pairs])


def _orders(rng: np.random.Generator, nodes: Places, wide: int) -> Int[np.ndarray, "graph node"]:
    """Return each graph's nodes in random order, followed by the padding columns."""
    chance = rng.random((len(nodes), wide))
    chance[np.arange(wide) >= nodes[:, None]] = 2
    return chance.argsort(1, kind="stable")


def _attempts(
    rng: np.random.Generator, nodes: Places
) -> tuple[Places, Int[np.ndarray, "graph attempt"], Int[np.ndarray, "graph attempt"]]:
    """Draw the number of attempted edges in each graph, and their two different end nodes."""
    count = rng.integers(nodes // 2, 2 * nodes + 1)
    shape = (len(nodes), int(count.max(initial=0)))
    first = rng.integers(nodes[:, None], size=shape)
    second = rng.integers(nodes[:, None] - 1, size=shape)
    return count, first, second + (second >= first)


def _with_edges(
    count: Places,
    first: Int[np.ndarray, "graph attempt"],
    second: Int[np.ndarray, "graph attempt"],
    wide: int,
) -> Edges:
    """Build the edges of graphs from the first `count` attempts of each."""
    edges = np.zeros((len(count), wide, wide), dtype=bool)
    row, attempt = (np.arange(first.shape[1]) < count[:, None]).nonzero()
    edges[row, first[row, attempt], second[row, attempt]] = True
    return edges


def _two_parts(
    rng: np.random.Generator, count: Places, nodes: Places, order: Int[np.ndarray, "graph node"]
) -> Graphs:
    """Draw graphs in two unconnected halves, with the source in one and the target in the other."""
    row = np.arange(len(nodes))
    half = nodes // 2
    shape = (len(nodes), int(count.max()))
    start = np.where(rng.integers(0, 2, shape) == 0, 0, half[:, None])
    size = np.where(start == 0, half[:, None], (nodes - half)[:, None])
    first = rng.integers(size)
    second = rng.integers(np.maximum(size - 1, 1))
    second = np.where(size > 1, second + (second >= first), first)
    first, second = (order[row[:, None], start + place] for place in (first, second))
    edges = _with_edges(count, first, second, order.shape[1])
    edges[:, np.arange(order.shape[1]), np.arange(order.shape[1])] = False  # for one-node halves
    source = order[row, rng.integers(half)]
    return Graphs(edges, nodes, source, order[row, half + rng.integers(nodes - half)])


def _joined(edges: Edges) -> Edges:
    """Return whether a path leads from each node to each other, by Warshall's algorithm."""
    joined = edges | np.eye(edges.shape[1], dtype=bool)
    for node in range(edges.shape[1]):
        joined |= joined[:, :, node, None] & joined[:, None, node]
    return joined


def _within_two(edges: Edges) -> Edges:
    """Return whether each node can be reached from each other over one or two edges."""
    step: Float[np.ndarray, "graph node node"] = edges.astype(np.float32)
    near = edges | (step @ step > 0)
    near[:, np.arange(edges.shape[1]), np.arange(edges.shape[1])] = False
    return near
