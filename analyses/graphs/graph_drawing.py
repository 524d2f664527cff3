"""Deterministic drawing of a directed graph, layered by distance from the source."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int

BEND = 0.22  # bend of an edge that does not lead to the next layer, as a share of its length
POINTS = 13  # points that make up a bent edge
RADIUS = 15  # of a node, in pixels
SWEEPS = 3

EdgeLines = Bool[np.ndarray, "node node"]
Coordinates = Float[np.ndarray, "node 2"]


def layers(edges: EdgeLines, distance: Int[np.ndarray, " node"], target: int) -> list[list[int]]:
    """Return the nodes by column: one for each distance from the source, then unreachable nodes.

    Unreachable nodes are grouped by the number of edges from them to the target: first those that
    do not lead to it, then from the farthest to the nearest.
    """
    reached = [np.flatnonzero(distance == d).tolist() for d in range(int(distance.max()) + 1)]
    before = _edges_to(edges, target)
    lost = distance < 0
    steps = sorted(set(before[lost].tolist()), key=lambda step: (step >= 0, -step))
    return reached + [np.flatnonzero(lost & (before == step)).tolist() for step in steps]


def places(edges: EdgeLines, columns: Sequence[Sequence[int]]) -> Coordinates:
    """Return node coordinates: columns from left to right, nodes near their neighbours' middle."""
    joined = edges | edges.T
    at = np.zeros((len(edges), 2))
    order = [list(column) for column in columns]
    for x, column in enumerate(order):
        at[column, 0] = x
        at[column, 1] = _spread(len(column))
    for sweep in range(SWEEPS):
        for column in order if sweep % 2 == 0 else reversed(order):
            inside = np.isin(np.arange(len(edges)), column)
            middle = {
                node: float(at[joined[node] & ~inside, 1].mean())
                if (joined[node] & ~inside).any()
                else 0.0
                for node in column
            }
            column.sort(key=lambda node: (-middle[node], node))
            at[column, 1] = _spread(len(column))
    return at


def add_edges(
    figure: go.Figure,
    at: Coordinates,
    edges: EdgeLines,
    weight: Float[np.ndarray, "node node"] | None,
    names: Sequence[str],
    **panel: int,
) -> None:
    """Draw edges as arrows, wider and darker with more weight; without weights all are alike."""
    for first, second in np.argwhere(edges):
        share = 0.2 if weight is None else float(weight[first, second])
        line = _bent(at[first], at[second])
        colour = f"rgba(40,40,40,{0.22 + 0.68 * share:.2f})"
        last = [0] * (POINTS - 1)
        what = f"{names[first]} → {names[second]}"
        figure.add_scatter(
            x=line[:, 0].tolist(),
            y=line[:, 1].tolist(),
            mode="lines+markers",
            line={"color": colour, "width": 1 + 7 * share, "backoff": [*last, RADIUS + 5]},
            marker={
                "symbol": "arrow",
                "size": [*last, 9 + 7 * share],
                "angleref": "previous",
                "standoff": [*last, RADIUS],
                "color": colour,
            },
            hovertemplate=what + ("" if weight is None else f": {share:.3f}") + "<extra></extra>",
            showlegend=False,
            **panel,
        )


def _edges_to(edges: EdgeLines, target: int) -> Int[np.ndarray, " node"]:
    """Count the edges on the shortest path from each node to the target; −1 if there is none."""
    steps = np.full(len(edges), -1)
    steps[target] = 0
    front, step = np.array([target]), 0
    while len(front):
        step += 1
        front = np.flatnonzero(edges[:, front].any(1) & (steps < 0))
        steps[front] = step
    return steps


def _spread(n: int) -> Float[np.ndarray, " node"]:
    return (n - 1) / 2 - np.arange(n, dtype=float)


def _bent(start: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"]) -> Float[np.ndarray, "p 2"]:
    """Return the line between two nodes: straight to the next layer, else bent to its left."""
    way = end - start
    bend = 0.0 if way[0] == 1 else BEND
    middle = (start + end) / 2 + bend * np.array([-way[1], way[0]])
    t = np.linspace(0, 1, POINTS)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
