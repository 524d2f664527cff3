"""A directed graph as a picture: layered by distance from the source, the same every time."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int

BEND = 0.22  # of its length, how far an edge that does not lead one layer on bends aside
POINTS = 13  # of a bent edge
RADIUS = 15  # pixels of a node
SWEEPS = 3

Edges = Bool[np.ndarray, "node node"]
Coordinates = Float[np.ndarray, "node 2"]


def layers(edges: Edges, distance: Int[np.ndarray, " node"], target: int) -> list[list[int]]:
    """Nodes by column: a column for each distance from the source, then those out of reach.

    Of those out of reach the ones that lead to the target stand by how many edges that takes.
    """
    reached = [np.flatnonzero(distance == d).tolist() for d in range(int(distance.max()) + 1)]
    before = _edges_to(edges, target)
    lost = distance < 0
    steps = sorted(set(before[lost].tolist()), key=lambda step: (step >= 0, -step))
    return reached + [np.flatnonzero(lost & (before == step)).tolist() for step in steps]


def places(edges: Edges, columns: Sequence[Sequence[int]]) -> Coordinates:
    """Where each node stands: columns from left to right, near the middle of its neighbours."""
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
    edges: Edges,
    weight: Float[np.ndarray, "node node"] | None,
    names: Sequence[str],
    **panel: int,
) -> None:
    """Arrows as wide and dark as their weight; without weights all alike."""
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


def _edges_to(edges: Edges, target: int) -> Int[np.ndarray, " node"]:
    """Edges on the shortest way from each node to the target; −1 where there is none."""
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
    """A way from one node to another: straight one layer on, else in a bow on its left."""
    way = end - start
    bend = 0.0 if way[0] == 1 else BEND
    middle = (start + end) / 2 + bend * np.array([-way[1], way[0]])
    t = np.linspace(0, 1, POINTS)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
