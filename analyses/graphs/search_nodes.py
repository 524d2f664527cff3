"""Roles of the nodes of ProsQA graphs in the search for an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.tasks.worded.prosqa.concept_graph import Graph, children, distances, neighbours

KINDS = (
    "next on a shortest path",
    "elsewhere on a shortest path",
    "other descendants",
    "unreachable",
)
NONE = -1


@dataclass(frozen=True, eq=False)
class SearchNodes:
    """Kinds and positions of nodes, with each graph padded to the size of the largest."""

    kind: Int[Tensor, "thought question node"]
    """Index in `KINDS` of each node as the next step's concept; −1 where there is no node."""
    frontier: Bool[Tensor, "thought question node"]
    """Whether a node is as many edges from the root as the next concept."""
    is_open: Bool[Tensor, "thought question"]
    """Whether the shortest path has a next concept."""
    height: Int[Tensor, "question node"]
    """Edges to the nearest leaf."""
    distance: Int[Tensor, "question node"]
    """Edges from the root; −1 if unreachable."""
    adjacency: Bool[Tensor, "start end"]
    """Edges of the first graph."""

    @property
    def absent(self) -> Bool[Tensor, "question node"]:
        """Mask of the padding: positions where a graph has no node."""
        return self.kind[0] == NONE

    @property
    def next_right(self) -> Bool[Tensor, "thought question node"]:
        """Mask of the nodes that come next on a shortest path."""
        return self.kind == 0

    def by_kind(
        self, values: Float[Tensor, "thought question node"]
    ) -> Float[Tensor, "thought question kind"]:
        """Sum the values over the nodes of each kind."""
        known = values.nan_to_num(0.0)
        return torch.stack([(known * (self.kind == k)).sum(-1) for k in range(len(KINDS))], dim=-1)

    def of_first(self) -> dict[str, Tensor]:
        """Return the first graph: edges, distances, and which nodes are on a shortest path."""
        n = len(self.adjacency)
        kind = self.kind[:, 0, :n]
        right = ((kind == 0) | (kind == 1)).any(0)
        return {"adjacency": self.adjacency, "distance": self.distance[0, :n], "right": right}


def nodes_of(graphs: Sequence[Graph], depths: Sequence[int]) -> SearchNodes:
    """Find the kind, height and distance of all nodes.

    Args:
        graphs: Graphs of the questions.
        depths: Distance of the next concept from the root, for each number of thoughts.
    """
    most = max(len(graph.names) for graph in graphs)
    kind = torch.full((len(depths), len(graphs), most), NONE)
    height, distance = (torch.full((len(graphs), most), NONE) for _ in range(2))
    for row, graph in enumerate(graphs):
        after = children(graph)
        steps, ways = distances(graph.root, after), neighbours(graph)
        for node in range(len(graph.names)):
            distance[row, node] = steps.get(node, NONE)
            height[row, node] = min(d for n, d in distances(node, after).items() if not after[n])
            for k, depth in enumerate(depths):
                kind[k, row, node] = _kind(node, depth, ways, steps)
    wanted = torch.tensor(depths)[:, None]
    hops = torch.tensor([graph.hops for graph in graphs])
    n = len(graphs[0].names)
    adjacency = torch.zeros(n, n, dtype=torch.bool)
    for a, b in graphs[0].edges:
        adjacency[a, b] = True
    return SearchNodes(
        kind, distance == wanted[..., None], wanted <= hops, height, distance, adjacency
    )


def _kind(node: int, depth: int, ways: Sequence[set[int]], steps: dict[int, int]) -> int:
    if depth < len(ways) and node in ways[depth]:
        return 0
    if any(node in way for way in ways):
        return 1
    return 2 if node in steps else 3
