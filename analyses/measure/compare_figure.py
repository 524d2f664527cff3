"""Figure of a comparison of runs."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.kit.labels import literal
from analyses.kit.style import COLOURS, CONTROL, legend_line, styled

if TYPE_CHECKING:
    from torch import Tensor

    from analyses.measure.compare import Compare

SHIFT = 0.12  # between runs at one level, so that their intervals do not overlap


def compare_figure(found: "Compare") -> go.Figure:
    """Draw accuracy overall, by level and with twins, and differences to the first run."""
    titles = ["accuracy", f"by {found.unit}", f"difference to {literal(found.runs[0])}"]
    if found.has_twins:
        titles.append("right together with the swapped twin")
    figure = make_subplots(2, 2, subplot_titles=titles, vertical_spacing=0.2)
    for i, name in enumerate(found.runs):
        colour = COLOURS[i % len(COLOURS)]
        middle = SHIFT * (i - (len(found.runs) - 1) / 2)
        levels = [level + middle for level in found.levels]
        ends = found.by_level[i], found.by_level_low[i], found.by_level_high[i]
        _points(figure, levels, ends, name, colour, (1, 2), legend=True)
        one = slice(i, i + 1)
        ends = found.accuracy[one], found.low[one], found.high[one]
        _points(figure, [literal(name)], ends, name, colour, (1, 1))
        ends = found.difference[one], found.difference_low[one], found.difference_high[one]
        note = f"<br>McNemar p={found.p_value[i]:.3g}"
        _points(figure, [literal(name)], ends, name, colour, (2, 1), note=note)
        if found.has_twins:
            ends = found.both[one], found.both_low[one], found.both_high[one]
            _points(figure, [literal(name)], ends, name, colour, (2, 2))
    _draw_controls(figure, found)
    figure.update_xaxes(title=found.unit, tickvals=found.levels, row=1, col=2)
    for row, col in ((1, 1), (1, 2), (2, 2)):
        figure.update_yaxes(range=[-0.02, 1.05], row=row, col=col)
    for row, col in ((1, 1), (2, 1), (2, 2)):
        figure.update_xaxes(showticklabels=False, row=row, col=col)
    return styled(figure, f"The same questions of {found.split}, several runs", height=720)


def _draw_controls(figure: go.Figure, found: "Compare") -> None:
    from analyses.measure.compare import BLIND

    line = {"line_color": CONTROL, "line_dash": "dot"}
    for col in (1, 2):
        figure.add_hline(y=found.guess_accuracy, row=1, col=col, **line)
    figure.add_hline(y=0, row=2, col=1, line_color=CONTROL)
    legend_line(figure, f"best guess: {literal(found.guess)}", "dot", CONTROL)
    if found.has_twins:
        figure.add_hline(y=BLIND, row=2, col=2, line_color=CONTROL, line_dash="dash")
        legend_line(figure, "most of a guess that is blind to the person", "dash", CONTROL)


def _points(
    figure: go.Figure,
    x: list[float] | list[str],
    ends: tuple["Tensor", "Tensor", "Tensor"],
    name: str,
    colour: str,
    panel: tuple[int, int],
    *,
    legend: bool = False,
    note: str = "",
) -> None:
    """Draw means as points and their intervals as error bars."""
    mean, low, high = ends
    figure.add_scatter(
        x=x,
        y=mean.tolist(),
        error_y={
            "type": "data",
            "array": (high - mean).clamp(min=0).tolist(),
            "arrayminus": (mean - low).clamp(min=0).tolist(),
        },
        mode="markers+lines" if len(x) > 1 else "markers",
        name=literal(name),
        legendgroup=name,
        showlegend=legend,
        marker={"color": colour, "size": 9},
        line={"color": colour},
        hovertemplate=f"{literal(name)} %{{y:.3f}}{note}<extra></extra>",
        row=panel[0],
        col=panel[1],
    )
