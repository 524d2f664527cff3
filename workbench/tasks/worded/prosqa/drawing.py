"""Draws graphs for ProsQA questions, with paths of the requested lengths and words for the nodes.

Graphs are drawn until there are enough of each length. No two nodes of a graph have the same name,
and edges are stated in a random order.
"""

from dataclasses import dataclass, field

import numpy as np

from workbench.settings.config import ConfigError, nearest
from workbench.tasks.worded.prosqa.concept_graph import Graph
from workbench.tasks.worded.prosqa.edges import LAWS, MOST_NODES
from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE
from workbench.tasks.worded.prosqa.matching import ASK, Asked

# Number of questions by hops, among the 800 of the official validation and test files
OFFICIAL = {3: 326, 4: 350, 5: 105, 6: 19}
AT_ONCE = (512, 4_096)  # fewest and most graphs drawn together
PER_GRAPH = 4  # graphs drawn for each graph that is still missing
TRIES = 200  # draws in a row without a suitable graph before giving up
CHOICES = {"version": tuple(ASK), "lengths": ("official", "balanced"), "law": tuple(LAWS)}
STREAM = 7_281  # makes these draws independent of other draws with the same seed


@dataclass(frozen=True)
class GraphSettings:
    """Settings of the graphs to draw; the defaults reproduce the official files' statistics."""

    n_nodes: int = 28  # nodes drawn; about five have no edges and are left out
    hops: tuple[int, int] = (3, 6)  # fewest and most, from root to target
    version: str = "paper"  # or matched
    lengths: str = "official"  # or balanced: distribution of the numbers of hops
    law: str = "file"  # or printed
    concepts: tuple[str, ...] = field(default=CONCEPTS, repr=False)
    people: tuple[str, ...] = field(default=PEOPLE, repr=False)

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name}={getattr(self, name)!r}: {nearest(getattr(self, name), choices)}"
                )
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

    @property
    def shares(self) -> dict[int, float]:
        """Share of graphs with each number of hops."""
        hops = range(self.hops[0], self.hops[1] + 1)
        counts = {n: 1 if self.lengths == "balanced" else OFFICIAL[n] for n in hops}
        return {n: count / sum(counts.values()) for n, count in counts.items()}


def draw_graphs(n: int, seed: int, settings: GraphSettings | None = None) -> list[Graph]:
    """Draw `n` graphs; the same seed gives the same graphs.

    Raises:
        ConfigError: No graph with this number of nodes seems to have a path of one of the lengths.
    """
    cfg = settings or GraphSettings()
    rng = np.random.default_rng([seed, STREAM])
    wanted = rng.choice(list(cfg.shares), size=n, p=list(cfg.shares.values()))
    places = {hops: np.flatnonzero(wanted == hops).tolist() for hops in cfg.shares}
    graphs: dict[int, Graph] = {}
    idle = 0
    while len(graphs) < n:
        before = len(graphs)
        at_once = min(max(PER_GRAPH * (n - before), AT_ONCE[0]), AT_ONCE[1])
        for found in ASK[cfg.version](rng, at_once, cfg.n_nodes, LAWS[cfg.law]):
            if places.get(found.hops) and (graph := _named(rng, found.make(), cfg)):
                graphs[places[found.hops].pop()] = graph
        idle = 0 if len(graphs) > before else idle + 1
        if idle == TRIES:
            hops = max(hops for hops, left in places.items() if left)
            raise ConfigError(
                f"no {cfg.version} graph of {cfg.n_nodes} nodes with a path of {hops} hops was "
                "found; more nodes, fewer hops or more names leave more room"
            )
    return [graphs[place] for place in range(n)]


def _named(rng: np.random.Generator, asked: Asked, cfg: GraphSettings) -> Graph | None:
    """Return a graph with words for its nodes, without isolated ones; None with too few words."""
    kept = np.flatnonzero(asked.edges.any(0) | asked.edges.any(1)).tolist()
    is_concept = np.asarray(asked.edges.any(0))[kept].tolist()
    n_concepts = sum(is_concept)
    if n_concepts > len(cfg.concepts) or len(kept) - n_concepts > len(cfg.people):
        return None
    place = {node: number for number, node in enumerate(kept)}
    ends = rng.permutation(np.argwhere(asked.edges)).tolist()
    concepts = iter(rng.permutation(len(cfg.concepts)).tolist())
    people = iter(rng.permutation(len(cfg.people)).tolist())
    return Graph(
        names=tuple(
            cfg.concepts[next(concepts)] if concept else cfg.people[next(people)]
            for concept in is_concept
        ),
        edges=tuple((place[a], place[b]) for a, b in ends),
        root=place[asked.root],
        other_root=place[1 - asked.root],
        target=place[asked.target],
        wrong=place[asked.wrong],
        target_first=bool(rng.integers(2)),
    )
