"""The shared style of all figures."""

from collections.abc import Sequence
from math import ceil

import plotly.graph_objects as go

# The Okabe-Ito palette, which colour-blind readers can tell apart
COLOURS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CONTROL = "#8A8A8A"
INK = "#333333"
SPLIT_COLOURS = {
    "train_atom": "#56B4E9",
    "train_id": "#0072B2",
    "test_id": "#009E73",
    "test_ood": "#D55E00",
}
LOG_TICKS = {
    "type": "log",
    "tickvals": [digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5)],
    "ticktext": [f"{digit * 10.0**power:g}" for power in range(-6, 7) for digit in (1, 2, 5)],
}
FOOT = 10  # pixels below the legend
DOT = " · "
SUBTITLE = 74  # characters of a subtitle line in a figure of half the page's width
SUBTITLE_ROW = 15
AXIS = 52  # pixels for tick labels and the title of an axis
LEGEND_ROW = 22
NARROW = 560  # pixels of the narrowest column that legends have to fit


def colour_of(split: str, number: int) -> str:
    """Return a split's colour, which is the same in every figure."""
    return SPLIT_COLOURS.get(split, COLOURS[number % len(COLOURS)])


def styled(figure: go.Figure, title: str, height: int = 420) -> go.Figure:
    """Apply the common layout, with space for the legend below the axes."""
    names = [t.name for t in figure.data if t.name and t.showlegend is not False]
    rows = ceil(sum(48 + 7 * len(name) for name in names) / NARROW)
    bottom = AXIS + FOOT + LEGEND_ROW * rows
    figure.update_annotations(font={"size": 13})
    figure.update_layout(
        title={
            "text": title,
            "x": 0.0,
            "xanchor": "left",
            "font": {"size": 15},
            "pad": {"l": 8},
            "y": 1 - 20 / height,
            "yanchor": "top",
        },
        template="plotly_white",
        font={"family": "Inter, Helvetica, Arial, sans-serif", "size": 13, "color": INK},
        height=height,
        margin={"l": 60, "r": 20, "t": 88, "b": bottom},
        legend={
            "orientation": "h",
            "yref": "container",
            "yanchor": "bottom",
            "y": FOOT / height,
            "x": 0.0,
        },
    )
    figure.update_yaxes(hoverformat=".3f")
    return figure


def subtitled(figure: go.Figure, text: str) -> go.Figure:
    """Add a subtitle with a figure's provenance, in as many lines as a narrow figure needs."""
    lines: list[str] = []
    for part in text.split(DOT):
        if lines and len(lines[-1]) + len(DOT) + len(part) <= SUBTITLE:
            lines[-1] += DOT + part
        else:
            lines.append(part)
    written = f"{DOT.rstrip()}<br>".join(lines)
    figure.update_layout(title_subtitle={"text": written, "font": {"size": 11, "color": "#777777"}})
    more = SUBTITLE_ROW * (len(lines) - 1)
    if more:  # grow the top margin, so that the axes keep their height
        layout = figure.layout  # plotly's own sizes where the figure sets none
        height = (layout.height or 450) + more
        figure.update_layout(
            height=height,
            margin_t=(layout.margin.t or 100) + more,
            title_y=1 - 20 / height,
            legend_y=FOOT / height,
        )
    return figure


def legend_line(figure: go.Figure, name: str, dash: str, colour: str = INK, **line: object) -> None:
    """Add a legend entry that explains a dash style rather than one trace."""
    figure.add_scatter(
        x=[None], y=[None], mode="lines", name=name, line={"color": colour, "dash": dash} | line
    )


def band(
    x: Sequence[float | int], low: Sequence[float], high: Sequence[float], colour: str
) -> go.Scatter:
    """Build a shaded band for an interval."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return go.Scatter(
        x=[*x, *reversed(x)],
        y=[*high, *reversed(low)],
        mode="lines",
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
