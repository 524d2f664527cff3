"""One look for all figures."""

from collections.abc import Sequence

import plotly.graph_objects as go

# Okabe and Ito's colours, told apart by colour-blind readers
COLOURS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CONTROL = "#8A8A8A"
SPLIT_COLOURS = {
    "train_atom": "#56B4E9",
    "train_id": "#0072B2",
    "test_id": "#009E73",
    "test_ood": "#D55E00",
}


def colour_of(split: str, number: int) -> str:
    """A split's colour: the same in every figure."""
    return SPLIT_COLOURS.get(split, COLOURS[number % len(COLOURS)])


def styled(figure: go.Figure, title: str, height: int = 420) -> go.Figure:
    """The common layout."""
    figure.update_layout(
        title={"text": title, "x": 0.0, "xanchor": "left", "font": {"size": 15}},
        template="plotly_white",
        font={"family": "Inter, Helvetica, Arial, sans-serif", "size": 13},
        height=height,
        margin={"l": 60, "r": 20, "t": 60, "b": 50},
        legend={"orientation": "h", "y": -0.18, "x": 0.0},
    )
    return figure


def band(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> go.Scatter:
    """An interval as a shaded band."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return go.Scatter(
        x=[*x, *reversed(x)],
        y=[*high, *reversed(low)],
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
