"""Random graphs for ProsQA questions, many at once: the published algorithm and a matched version.

Two roots, nodes 0 and 1, are there first (Hao et al. 2024, appendix A.2, algorithm 1). Each further
node gets Poisson(1.5) parents among the nodes before it, with weights 1.5·depth + 1. A node's label
says from which of the two roots it descends: 1, 2, both (3) or neither (0). Some nodes draw their
parents from the first root's descendants alone, some from the second's alone, the rest from all.
Nodes without any edge are left out in the end. The concepts asked about are leaves, one descended
from one root alone and one from the other.

The algorithm as printed does not give the statistics of the official files (22.8 nodes, 36.3 edges,
2.5 people). Weighing how its parents were drawn in the 300 official validation graphs, the likeliest
is `FILE`: the shares of the three kinds are .35, .65·.7 and .65·.3, as if drawn twice; nodes
without label are parents only for the last kind; and the target is the furthest of the root's
leaves, in 300 of 300. With 28 nodes at first, the statistics are met. `PRINTED` is as printed.

    paper     root at random, target by the rule above, wrong concept any leaf of the other root.
              Target and wrong concept differ in how many ancestors they have, so that most
              questions can be answered without looking at who is asked about.
    matched   two leaves that are equally far from their own roots and have equally many parents,
              ancestors within 2 and 3 steps, and ancestors in all; which root is asked about is
              decided by a coin after all else is drawn, so that nothing that leaves it out of account
              tells the target.

Path lengths are met by drawing until there are enough graphs of each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.config import ConfigError, nearest
from workbench.tasks.worded.prosqa_graph import Graph
from workbench.tasks.worded.prosqa_names import CONCEPTS, PEOPLE

# Questions with paths of so many hops among the 800 of the official validation and test files
OFFICIAL = {3: 326, 4: 350, 5: 105, 6: 19}
AT_ONCE = (512, 4_096)  # graphs drawn together, fewest and most
PER_GRAPH = 4  # of them for each graph that is still wanted
TRIES = 200  # draws without a wanted graph before there seems to be none
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
    """Whether the target is the furthest leaf; otherwise it is any."""


FILE = Law((0.35, 0.65 * 0.7), unlabelled=False, furthest=True)
PRINTED = Law((0.35, 0.35), unlabelled=True, furthest=False)
LAWS = {"file": FILE, "printed": PRINTED}


@dataclass(frozen=True)
class GraphSettings:
    """What graphs to draw; the defaults give the statistics of the official files."""

    n_nodes: int = 28  # drawn; those without any edge are left out, about five
    hops: tuple[int, int] = (3, 6)  # fewest and most, from root to target
    version: Literal["paper", "matched"] = "paper"
    lengths: Literal["official", "balanced"] = "official"  # how often each number of hops occurs
    law: Literal["file", "printed"] = "file"
    concepts: tuple[str, ...] = field(default=CONCEPTS, repr=False)
    people: tuple[str, ...] = field(default=PEOPLE, repr=False)

    def __post_init__(self) -> None:
        for name in ("version", "lengths", "law"):
            choices = get_args(type(self).__annotations__[name])
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name}={getattr(self, name)!r}: {_near(self, name, choices)}")
        least, most = self.hops
        if not 1 <= least <= most:
            raise ConfigError(f"hops={self.hops}: the fewest must be at least 1, the most no fewer")
        if self.lengths == "official" and not set(range(least, most + 1)) <= set(OFFICIAL):
            raise ConfigError(
                f"hops={self.hops}: the official files have {min(OFFICIAL)} to {max(OFFICIAL)} "
                "hops; for others, lengths='balanced' is right"
            )
        if not 2 * (least + 1) <= self.n_nodes <= MOST_NODES:
            raise ConfigError(
                f"n_nodes={self.n_nodes} must lie between {2 * (least + 1)}, two paths of {least} "
                f"hops, and {MOST_NODES}"
            )
        if self.n_nodes - 2 > len(self.concepts):
            raise ConfigError(
                f"{self.n_nodes} nodes need up to {self.n_nodes - 2} words for concepts; there are "
                f"{len(self.concepts)}"
            )

    @property
    def shares(self) -> dict[int, float]:
        """How often each number of hops occurs."""
        hops = range(self.hops[0], self.hops[1] + 1)
        counts = {n: 1 if self.lengths == "balanced" else OFFICIAL[n] for n in hops}
        return {n: count / sum(counts.values()) for n, count in counts.items()}


def _near(settings: GraphSettings, name: str, choices: tuple[str, ...]) -> str:
    return nearest(str(getattr(settings, name)), choices)


@dataclass(frozen=True, eq=False)
class Asked:
    """Graphs with numbered nodes, before they have names."""

    edges: Edges
    root: Rows
    target: Rows
    wrong: Rows
    hops: Rows

    def __getitem__(self, rows: Rows | Bool[np.ndarray, " graph"]) -> "Asked":
        """Some of the graphs."""
        return Asked(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def draw_graphs(n: int, seed: int, settings: GraphSettings | None = None) -> list[Graph]:
    """So many graphs; equal for one seed.

    Raises:
        ConfigError: No graph of so few nodes seems to have a path of one of the lengths.
    """
    cfg = settings or GraphSettings()
    rng = np.random.default_rng([seed, 7_281])  # apart from other generators of that seed
    lengths, shares = np.array(list(cfg.shares)), list(cfg.shares.values())
    wanted = rng.choice(lengths, size=n, p=shares)
    graphs: list[Graph | None] = [None] * n
    open_places = {int(hops): list(np.flatnonzero(wanted == hops)) for hops in lengths}
    idle, left = 0, n
    while left:
        found = _draw(rng, min(max(PER_GRAPH * left, AT_ONCE[0]), AT_ONCE[1]), cfg)
        before = left
        for row, hops in enumerate(found.hops.tolist()):
            if open_places.get(hops):
                graphs[open_places[hops].pop(0)] = _named(rng, found, row, cfg)
                left -= 1
        idle = 0 if left < before else idle + 1
        if idle == TRIES:
            hops = next(hops for hops, places in open_places.items() if places)
            raise ConfigError(
                f"no {cfg.version} graph of {cfg.n_nodes} nodes with a path of {hops} hops was "
                "found; more nodes or fewer hops leave more room"
            )
    return [graph for graph in graphs if graph is not None]


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


def _draw(rng: np.random.Generator, n: int, cfg: GraphSettings) -> Asked:
    """Graphs that have something to ask, from n that were drawn."""
    edges, label = draw_edges(rng, n, cfg.n_nodes, LAWS[cfg.law])
    leaf = ~edges.any(2)
    leaf[:, :2] = False
    steps = _steps(edges)
    if cfg.version == "matched":
        return _ask_matched(rng, edges, leaf, label, steps)
    return _ask(rng, edges, leaf, label, steps, LAWS[cfg.law].furthest)


def _ask(
    rng: np.random.Generator,
    edges: Edges,
    leaf: Bool[np.ndarray, "graph node"],
    label: Nodes,
    steps: Int[np.ndarray, "2 graph node"],
    furthest: bool,
) -> Asked:
    """Ask about one of the two roots, its furthest leaf or any, and any leaf of the other."""
    row, root = np.arange(len(edges)), rng.integers(2, size=len(edges))
    own, other = leaf & (label == root[:, None] + 1), leaf & (label == 2 - root[:, None])
    far = steps[root, row] * furthest
    noise = rng.random(leaf.shape)
    target = np.where(own, far + noise, -1).argmax(1)
    wrong = np.where(other, rng.random(leaf.shape), -1).argmax(1)
    asked = Asked(edges, root, target, wrong, steps[root, row, target])
    return asked[own.any(1) & other.any(1)]


def _ask_matched(
    rng: np.random.Generator,
    edges: Edges,
    leaf: Bool[np.ndarray, "graph node"],
    label: Nodes,
    steps: Int[np.ndarray, "2 graph node"],
) -> Asked:
    """Ask about two leaves, one of each root, that look alike; a coin says which is the target."""
    row = np.arange(len(edges))
    looks = (np.where(label == 2, steps[1], steps[0]), *_ancestors(edges))
    alike = (leaf & (label == 1))[:, :, None] & (leaf & (label == 2))[:, None, :]
    for number in looks:
        alike &= number[:, :, None] == number[:, None, :]
    weight = np.where(alike, rng.random(alike.shape), -1).reshape(len(row), -1)
    pair = np.stack(np.divmod(weight.argmax(1), edges.shape[1]))  # of the first root, of the second
    root = rng.integers(2, size=len(row))
    target, wrong = pair[root, row], pair[1 - root, row]
    return Asked(edges, root, target, wrong, steps[root, row, target])[alike.any((1, 2))]


def _steps(edges: Edges) -> Int[np.ndarray, "2 graph node"]:
    """Edges on the shortest way from each of the two roots to each node; `FAR` without a way."""
    steps = np.full((2, *edges.shape[:2]), FAR)
    steps[[0, 1], :, [0, 1]] = 0
    for node in range(2, edges.shape[1]):
        before = np.where(edges[:, :node, node], steps[:, :, :node], FAR)
        steps[:, :, node] = np.minimum(before.min(2) + 1, FAR)
    return steps


def _ancestors(edges: Edges) -> Iterator[Nodes]:
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


def _named(rng: np.random.Generator, asked: Asked, row: int, cfg: GraphSettings) -> Graph:
    """One graph with words for its nodes, its edges in a random order."""
    edges = asked.edges[row]
    kept = np.flatnonzero(edges.any(0) | edges.any(1))
    place = {int(node): number for number, node in enumerate(kept)}
    ends = np.argwhere(edges).tolist()
    concept = edges.any(0)[kept]
    if len(kept) - concept.sum() > len(cfg.people):
        raise ConfigError(f"a graph needs more than the {len(cfg.people)} names for people")
    words = iter(rng.permutation(len(cfg.concepts)).tolist())
    people = iter(rng.permutation(len(cfg.people)).tolist())
    root = int(asked.root[row])
    return Graph(
        names=tuple(
            cfg.concepts[next(words)] if is_one else cfg.people[next(people)] for is_one in concept
        ),
        edges=tuple((place[ends[i][0]], place[ends[i][1]]) for i in rng.permutation(len(ends))),
        root=place[root],
        other_root=place[1 - root],
        target=place[int(asked.target[row])],
        wrong=place[int(asked.wrong[row])],
        target_first=bool(rng.integers(2)),
    )
