"""Figure of a compute frontier: a heat map, the fitted frontier, and the controls beside it."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from analyses.kit.labels import literal
from analyses.kit.style import legend_line, styled

if TYPE_CHECKING:
    from analyses.measure.compute_frontier import ComputeFrontier

FRONTIER = "#D55E00"
RANGE = "#000000"
NO_BETTER = " (×: a guess does about as well)"


def frontier_figure(found: "ComputeFrontier") -> go.Figure:
    """Draw loops to the right and difficulty upwards; each control has its own column."""
    columns = {"commonest<br>answer": found.majority}
    if found.shortcut_name is not None:
        columns["best<br>shortcut"] = found.shortcut
    wide = max(0.08 * len(columns), 1.6 * len(columns) / (found.n_loops + len(columns)))
    wide = min(wide, 0.7)  # keeps the heat map visible when there are only one or two loops
    figure = make_subplots(
        1, 2, column_widths=[1 - wide, wide], shared_yaxes=True, horizontal_spacing=0.03
    )
    rows = [str(level) for level in found.levels.tolist()]
    loops = list(range(1, found.n_loops + 1))
    cells = {"texttemplate": "%{z:.2f}", "coloraxis": "coloraxis", "zhoverformat": ".3f"}
    small = {"textfont": {"size": 10 if found.n_loops > 12 else 12}}
    heat = go.Heatmap(
        z=found.accuracy.tolist(),
        x=loops,
        y=rows,
        hoverinfo="skip",
        **cells,
        **small,
    )
    figure.add_trace(heat, row=1, col=1)
    controls = torch.stack(list(columns.values()), dim=1).tolist()  # [difficulty control]
    figure.add_trace(go.Heatmap(z=controls, x=list(columns), y=rows, **cells), row=1, col=2)
    _draw_frontier(figure, found)
    _draw_range(figure, found)
    _draw_targets(figure, found)
    _name_axes(figure, found)
    return styled(figure, figure.layout.title.text, height=260 + 40 * len(rows))


def _name_axes(figure: go.Figure, found: "ComputeFrontier") -> None:
    across = [0.5, found.n_loops + 0.5]
    figure.update_xaxes(title="read after loop", dtick=1, range=across, row=1, col=1)
    figure.update_xaxes(side="bottom", tickangle=0, row=1, col=2)
    figure.update_yaxes(title=found.unit, type="category", row=1, col=1)
    figure.update_yaxes(type="category", row=1, col=2)
    figure.update_layout(
        coloraxis={"colorscale": "Viridis", "cmin": 0, "cmax": 1, "colorbar_title": "accuracy"}
    )
    title = f"Accuracy over loops and {found.unit}"
    if found.shortcut_name is not None:
        title += f"; best shortcut: {literal(found.shortcut_name)}"
    figure.update_layout(title=title)


def _draw_frontier(figure: go.Figure, found: "ComputeFrontier") -> None:
    """Draw where each difficulty is solved, with its interval, and the line through the points."""
    solved = [i for i, loops in enumerate(found.crossing.tolist()) if loops == loops]
    if not solved:
        return
    at = found.crossing[solved]
    all_beyond = bool(found.beyond_guess[solved].all())
    figure.add_scatter(
        x=at.tolist(),
        y=[str(int(found.levels[i])) for i in solved],
        error_x={
            "type": "data",
            "array": (found.crossing_high[solved] - at).clamp(min=0).tolist(),
            "arrayminus": (at - found.crossing_low[solved]).clamp(min=0).tolist(),
            "color": FRONTIER,
        },
        mode="markers",
        marker={
            "color": FRONTIER,
            "size": 17,
            "symbol": ["circle-open" if found.beyond_guess[i] else "x-thin" for i in solved],
            "line": {"color": FRONTIER, "width": 3},
        },
        name="3/4 of the way from chance to the ceiling" + NO_BETTER * (not all_beyond),
        hovertemplate="%{y}: after %{x:.2f} loops<extra></extra>",
        row=1,
        col=1,
    )
    if found.slope.value == found.slope.value:
        fitted = [int(level) for level in found.levels[found.beyond_guess]]
        figure.add_scatter(
            x=[found.intercept + found.slope.value * level for level in fitted],
            y=list(map(str, fitted)),
            mode="lines",
            line={"color": FRONTIER, "width": 3},
            name=f"frontier: {found.slope} loops a step",
            hoverinfo="skip",
            row=1,
            col=1,
        )


def _draw_range(figure: go.Figure, found: "ComputeFrontier") -> None:
    """Draw a dashed frame around the loops and difficulties used in training."""
    if found.trained_loops is None or found.trained_difficulty is None:
        return
    least, most = found.trained_difficulty
    shown = [i for i, level in enumerate(found.levels.tolist()) if least <= level <= most]
    first, last = found.trained_loops
    if not shown or first > found.n_loops:
        return
    line = {"color": RANGE, "width": 3, "dash": "dash"}
    ends = {"x0": first - 0.5, "x1": min(last, found.n_loops) + 0.5}
    ends |= {"y0": shown[0] - 0.5, "y1": shown[-1] + 0.5}
    figure.add_shape(**ends, line={"color": "white", "width": 5}, row=1, col=1)
    figure.add_shape(**ends, line=line, row=1, col=1)
    name = f"trained: {first}–{last} loops, {least}–{most} {found.unit}"
    legend_line(figure, name, "dash", RANGE, width=3)


def _draw_targets(figure: go.Figure, found: "ComputeFrontier") -> None:
    """Draw a point in each cell, because points can be clicked and heat-map cells cannot.

    `customdata` holds the difficulty, the loop (numbered from 0) and the hover text. A point is
    visible only when it is selected.
    """
    cells = [
        (level, loop, f"{accuracy:.3f} [{low:.3f}, {high:.3f}], n={n}")
        for level, n, *values in zip(
            found.levels.tolist(),
            found.n.tolist(),
            found.accuracy.tolist(),
            found.low.tolist(),
            found.high.tolist(),
            strict=True,
        )
        for loop, (accuracy, low, high) in enumerate(zip(*values, strict=True))
    ]
    figure.add_scatter(
        x=[loop + 1 for _, loop, _ in cells],
        y=[str(level) for level, _, _ in cells],
        customdata=cells,
        mode="markers",
        marker={"symbol": "square-open", "size": 30, "color": "white", "line": {"width": 4}},
        opacity=0,
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{y} " + found.unit + ", after loop %{x}<br>%{customdata[2]}<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
