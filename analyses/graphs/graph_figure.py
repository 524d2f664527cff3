"""Figure of one graph after one loop: predictions for each node, and where each node attends."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.graphs.graph_drawing import RADIUS, Coordinates, add_edges, layers, places
from analyses.graphs.reached_set import WAYS
from analyses.kit.labels import literal, loop_label
from analyses.kit.style import COLOURS, CONTROL, INK, styled

if TYPE_CHECKING:
    from analyses.graphs.graph_states import GraphStates

REACHED, WRONG, EMPTY = COLOURS[0], COLOURS[2], "#FFFFFF"
ROW = 62  # pixels between nodes of one column


def graph_figure(found: "GraphStates") -> go.Figure:
    """Draw the graph twice: with the predictions of the probe and with those of the readout."""
    edges, distance = found.adjacency.numpy(), found.distance.numpy()
    columns = layers(edges, distance, found.target_at)
    at = places(edges, columns)
    weight = None if found.weight is None else found.weight.numpy()
    titles = [WAYS[way] for way in found.ways]
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.04)
    for panel, way in enumerate(found.ways, 1):
        add_edges(figure, at, edges, weight, found.labels, row=1, col=panel)
        _draw_nodes(figure, found, at, way, panel)
        _draw_columns(figure, found, columns, panel)
    _draw_legend(figure, found)
    tall = max(map(len, columns))
    figure.update_yaxes(visible=False, range=[-tall / 2 - 0.25, tall / 2 + 0.25])
    word, share = found.said[found.shown_loop]
    title = (
        f"{loop_label(found.shown_loop).capitalize()} the answer is {word} ({share:.2f}); "
        f"true: {found.answer}"
    )
    return styled(figure, literal(title), height=230 + ROW * max(tall, 4))


def _draw_columns(
    figure: go.Figure, found: "GraphStates", columns: list[list[int]], panel: int
) -> None:
    """Label the columns with distances, and put unreachable nodes on a grey background."""
    n_reached = int(found.distance.max()) + 1
    ticks = ["source", *map(str, range(1, n_reached))]
    figure.update_xaxes(
        tickvals=list(range(n_reached)),
        ticktext=ticks,
        range=[-0.5, len(columns) - 0.5],
        title="edges from the source",
        showgrid=False,
        zeroline=False,
        row=1,
        col=panel,
    )
    if len(columns) > n_reached:
        ends = {"x0": n_reached - 0.5, "x1": len(columns) - 0.5}
        shade = {"fillcolor": CONTROL, "opacity": 0.12, "line_width": 0, "layer": "below"}
        figure.add_vrect(
            **ends,
            **shade,
            annotation_text="out of reach",
            annotation_position="bottom",
            row=1,
            col=panel,
        )


def _draw_nodes(
    figure: go.Figure, found: "GraphStates", at: Coordinates, way: int, panel: int
) -> None:
    """Draw nodes: filled if predicted to be reached, with a coloured ring if that is wrong."""
    loop = found.shown_loop
    ends = {found.source_at: "source", found.target_at: "target"}
    said, true = found.reached[way, loop].tolist(), found.true[way, loop].tolist()
    target = at[found.target_at]
    ring = {"symbol": "circle-open", "size": 2 * RADIUS + 12, "color": INK, "line": {"width": 2}}
    figure.add_scatter(
        x=[target[0]],
        y=[target[1]],
        mode="markers",
        marker=ring,
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=panel,
    )
    fills, rings, inks, texts = [], [], [], []
    for node, name in enumerate(found.labels):
        is_source = node == found.source_at
        filled = said[node] or is_source
        wrong = said[node] != true[node] and not is_source
        steps = int(found.distance[node])
        far = f"{steps} edges from the source" if steps >= 0 else "out of reach"
        fills.append(INK if is_source else REACHED if filled else EMPTY)
        rings.append(WRONG if wrong else INK if is_source else REACHED)
        inks.append("white" if filled else INK)
        verdict = "" if is_source else f"<br>said {'reached' if said[node] else 'not reached'}"
        role = f", {ends[node]}" if node in ends else ""
        texts.append(f"{name}{role}: {far}{verdict}{', wrongly' if wrong else ''}")
    figure.add_scatter(
        x=at[:, 0].tolist(),
        y=at[:, 1].tolist(),
        mode="markers+text",
        text=[f"<b>{name}</b>" for name in found.labels],
        textfont={"color": inks, "size": 14},
        marker={
            "size": 2 * RADIUS,
            "symbol": ["square" if n == found.source_at else "circle" for n in range(len(at))],
            "color": fills,
            "opacity": 1,
            "line": {"color": rings, "width": [4 if ring == WRONG else 2 for ring in rings]},
        },
        hovertext=texts,
        hoverinfo="text",
        showlegend=False,
        row=1,
        col=panel,
    )


def _draw_legend(figure: go.Figure, found: "GraphStates") -> None:
    """Add legend entries for fills, rings and edge widths."""
    for name, symbol, fill, ring, width in (
        ("source", "square", INK, INK, 2),
        ("target", "circle-open", INK, INK, 2),
        ("said to be reached", "circle", REACHED, REACHED, 2),
        ("said not to be", "circle", EMPTY, REACHED, 2),
        ("wrongly said", "circle", EMPTY, WRONG, 4),
    ):
        line = {"color": ring, "width": width}
        marker = {"symbol": symbol, "size": 13, "color": fill, "line": line}
        figure.add_scatter(x=[None], y=[None], mode="markers", name=name, marker=marker)
    if found.pattern is not None:
        whose = "mean of all heads" if found.head is None else f"head {found.head}"
        wide = {"color": INK, "width": 5}
        name = f"attention, {whose}: a node looks back along wide edges"
        figure.add_scatter(x=[None], y=[None], mode="lines", name=name, line=wide)
