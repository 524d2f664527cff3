"""Figures of a search by thoughts: one question's tree, or means over many questions."""

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.graphs.graph_drawing import RADIUS, add_edges, layers, places
from analyses.graphs.search_nodes import KINDS
from analyses.kit.labels import level_label, literal
from analyses.kit.style import COLOURS, CONTROL, INK, band, legend_line, styled
from workbench.tasks.worded.prosqa.paths import CLASSES
from workbench.tasks.worded.task import ANSWER

if TYPE_CHECKING:
    from analyses.graphs.thought_search_tree import ThoughtSearchTree

ACROSS = 2  # trees side by side
RIGHT = COLOURS[2]
PATH_COLOURS = (*COLOURS[1:2], COLOURS[5], COLOURS[4], COLOURS[2], CONTROL, COLOURS[0], COLOURS[3])


def tree_figure(found: "ThoughtSearchTree") -> go.Figure:
    """Draw one question's graph after each number of thoughts, with nodes coloured by value."""
    n = len(found.value)
    rows = -(-n // ACROSS)
    titles = [f"{level_label(k, 'thoughts')}: {_short(found.words[k])}" for k in range(n)]
    across = min(n, ACROSS)
    figure = make_subplots(
        rows, across, subplot_titles=titles, horizontal_spacing=0.03, vertical_spacing=0.16 / rows
    )
    edges, distance = found.adjacency.numpy(), found.distance.numpy()
    columns = layers(edges, distance, found.target)
    at = places(edges, columns)
    tall = max(map(len, columns))
    for k in range(n):
        panel = {"row": k // ACROSS + 1, "col": k % ACROSS + 1}
        add_edges(figure, at, edges, None, found.names, **panel)
        _draw_nodes(figure, found, k, at, panel)
    n_reached = int(distance.max()) + 1
    ticks = ["root", *map(str, range(1, n_reached))]
    figure.update_xaxes(
        tickvals=list(range(n_reached)), ticktext=ticks, showgrid=False, zeroline=False
    )
    figure.update_xaxes(range=[-0.6, len(columns) - 0.4])
    figure.update_xaxes(title="edges from the root", row=rows, col=1)
    figure.update_yaxes(visible=False, range=[-tall / 2 - 0.5, tall / 2 + 0.3])
    bar = {"title": "value", "thickness": 12, "lenmode": "pixels", "len": 240}
    bar |= {"y": 1, "yanchor": "top"}
    scale = {"colorscale": "Blues", "cmin": 0, "cmax": 1, "colorbar": bar}
    figure.update_layout(coloraxis=scale)
    _ring(figure, "on a shortest way to the target", "circle", RIGHT)
    for name, symbol in (("root", "square"), ("target", "star"), ("wrong concept", "x")):
        _ring(figure, name, symbol, CONTROL)
    what = "ends" if found.part == "end" else "begins"
    title = f"Where the next step {what}, if thinking ends after so many thoughts"
    return styled(figure, title, height=200 + rows * (90 + 62 * max(tall, 3)))


def _draw_nodes(
    figure: go.Figure, found: "ThoughtSearchTree", k: int, at: np.ndarray, panel: dict[str, int]
) -> None:
    values = found.value[k, 0, : len(found.names)].tolist()
    right = found.right.tolist()
    roles = {found.wrong: "wrong concept, ", found.root: "root, ", found.target: "target, "}
    symbols = {found.root: "square", found.target: "star", found.wrong: "x"}
    texts = [
        f"{literal(name)}: {roles.get(node, '')}{_far(int(found.distance[node]))}<br>"
        f"value {values[node]:.3f}"
        for node, name in enumerate(found.names)
    ]
    figure.add_scatter(
        x=at[:, 0].tolist(),
        y=at[:, 1].tolist(),
        mode="markers+text",
        text=[f"{literal(name)}<br>{v:.2f}" for name, v in zip(found.names, values, strict=True)],
        textposition="bottom center",
        textfont={"size": 10},
        marker={
            "size": 2 * RADIUS - 8,
            "symbol": [symbols.get(node, "circle") for node in range(len(values))],
            "color": values,
            "coloraxis": "coloraxis",
            "opacity": 1,
            "line": {
                "color": [RIGHT if one else CONTROL for one in right],
                "width": [3 if one else 1 for one in right],
            },
        },
        hovertext=texts,
        hoverinfo="text",
        showlegend=False,
        **panel,
    )


def _far(steps: int) -> str:
    return f"{steps} edges from the root" if steps >= 0 else "out of reach"


def _short(words: str, most: int = 34) -> str:
    """Shorten an output to `most` characters, without the answer mark at its start."""
    words = words.removeprefix(ANSWER).strip()
    return literal(words if len(words) <= most else f"{words[: most - 2]} …")


def _ring(figure: go.Figure, name: str, symbol: str, colour: str) -> None:
    line = {"color": colour, "width": 3 if colour == RIGHT else 1}
    marker = {"size": 14, "color": "white", "symbol": symbol, "line": line}
    figure.add_scatter(x=[None], y=[None], mode="markers", name=name, marker=marker)


def search_figure(found: "ThoughtSearchTree") -> go.Figure:
    """Draw four panels: mass of the likeliest nodes, by kind, by height, and the paths said."""
    titles = (
        "mass of the likeliest nodes",
        "mass by kind of node",
        "value of nodes that can be next, by height",
        "what is then said",
    )
    figure = make_subplots(2, 2, subplot_titles=titles, vertical_spacing=0.17)
    x = [float(k) for k in range(len(found.value))]
    for rank in range(found.top.shape[1]):
        column = {name: getattr(found, name)[:, rank] for name in ("top", "top_low", "top_high")}
        dash = ("solid", "dash", "dashdot")[rank]
        name, at = f"top {rank + 1}", {"row": 1, "col": 1}
        line = {"color": INK, "dash": dash}
        _curve(figure, x, [*column.values()], name, line, at)
        control = found.top_untrained[:, rank].tolist()
        _control(figure, x, control, CONTROL, dash, at)
    for kind, name in enumerate(KINDS):
        parts = [getattr(found, f"mass{end}")[:, kind] for end in ("", "_low", "_high")]
        line, at = {"color": COLOURS[kind]}, {"row": 1, "col": 2}
        _curve(figure, x, parts, name, line, at)
        _control(figure, x, found.mass_untrained[:, kind].tolist(), COLOURS[kind], "dot", at)
    _draw_heights(figure, found)
    _draw_paths(figure, found, x)
    legend_line(figure, "control: untrained twin", "dot", CONTROL)
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    for row, col in ((1, 1), (1, 2), (2, 2)):
        figure.update_xaxes(title="thoughts", dtick=1, row=row, col=col)
    figure.update_xaxes(title="edges to the nearest leaf", dtick=1, row=2, col=1)
    figure.update_yaxes(range=[-0.02, 1.05])
    what = "end" if found.part == "end" else "beginning"
    return styled(figure, f"Values of concepts as the {what} of the next step", height=760)


def _draw_paths(figure: go.Figure, found: "ThoughtSearchTree", x: list[float]) -> None:
    for number, name in enumerate(CLASSES):
        if not bool(found.paths[:, number].any()):
            continue
        share, low, high = (
            getattr(found, f"paths{end}")[:, number] for end in ("", "_low", "_high")
        )
        figure.add_bar(
            x=x,
            y=share.tolist(),
            name=name,
            marker_color=PATH_COLOURS[number],
            customdata=list(zip(low.tolist(), high.tolist(), strict=True)),
            hovertemplate=f"{name} %{{y:.3f}} [%{{customdata[0]:.3f}}, %{{customdata[1]:.3f}}]"
            "<extra></extra>",
            row=2,
            col=2,
        )


def _draw_heights(figure: go.Figure, found: "ThoughtSearchTree") -> None:
    for right, (name, colour) in enumerate(
        (("off every shortest path", CONTROL), ("on a shortest path", RIGHT))
    ):
        known = found.by_height_n[right] > 0
        heights = known.nonzero()[:, 0]
        parts = [getattr(found, f"by_height{end}")[right][known] for end in ("", "_low", "_high")]
        x = [float(height) for height in heights.tolist()]
        _curve(figure, x, parts, name, {"color": colour}, {"row": 2, "col": 1})


def _curve(
    figure: go.Figure, x: list[float], parts: list[Any], name: str, line: Any, at: dict[str, int]
) -> None:
    mean, low, high = (part.tolist() for part in parts)
    figure.add_trace(band(x, low, high, line["color"]), **at)
    figure.add_scatter(x=x, y=mean, mode="lines+markers", name=name, line=line, **at)


def _control(
    figure: go.Figure, x: list[float], y: list[float], colour: str, dash: str, at: dict[str, int]
) -> None:
    line = {"color": colour, "dash": "dot", "width": 1}
    what = f"untrained twin %{{y:.3f}}, {dash}" if colour == CONTROL else "untrained twin %{y:.3f}"
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line=line,
        marker={"size": 4},
        showlegend=False,
        hovertemplate=f"{what}<extra></extra>",
        **at,
    )
