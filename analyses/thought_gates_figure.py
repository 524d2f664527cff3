"""Pictures of the concept stream's gates: thought × channel, and means by thought."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.style import COLOURS, CONTROL, band, legend_line, styled

if TYPE_CHECKING:
    from torch import Tensor

    from analyses.thought_gates import ThoughtGates

TITLES = (
    "read: share of the stream taken",
    "forget: share of the state erased",
    "write: share of the thought kept",
)
ROWS = (
    ("share", "coloraxis"),
    ("sd of the share", "coloraxis2"),
    ("before the σ", "coloraxis3"),
)


def thought_gates_figure(found: "ThoughtGates") -> go.Figure:
    """Mean and spread of the shares by channel, what the σ is given, and all by thought."""
    n_thoughts = found.mean.shape[1]
    height = 660 + 36 * n_thoughts
    titles = [*TITLES, *["spread between questions"] * 3, *["before the σ"] * 3]
    figure = make_subplots(
        4,
        3,
        subplot_titles=[*titles, *["mean ± sd over all values"] * 3],
        shared_yaxes=True,
        vertical_spacing=58 / height,
        horizontal_spacing=0.03,
        row_heights=[0.22, 0.22, 0.22, 0.34],
    )
    for column in range(3):
        for row, values in enumerate((found.after, found.after_sd, found.before), 1):
            heat = _heat(values[column], found.order, ROWS[row - 1][1])
            figure.add_trace(heat, row=row, col=column + 1)
        _lines(figure, found, column)
    figure.update_yaxes(autorange="reversed", row=1)
    figure.update_yaxes(autorange="reversed", row=2)
    figure.update_yaxes(autorange="reversed", row=3)
    figure.update_xaxes(showticklabels=False)
    figure.update_xaxes(title="channel, by mean read", title_standoff=4, row=3)
    figure.update_xaxes(showticklabels=True, title="thought", dtick=1, row=4)
    figure.update_yaxes(range=[0, 1], row=4)
    figure.update_yaxes(title="thought", dtick=max(1, n_thoughts // 4), col=1)
    figure.update_yaxes(title="share", dtick=0.25, row=4, col=1)
    _scales(figure, found)
    legend_line(figure, "below .1", "dot")
    legend_line(figure, "above .9", "dash")
    title = "Gates of the concept stream, after the σ: forget 1 erases the state, 0 keeps it"
    return styled(figure, title, height)


def _heat(values: "Tensor", order: "Tensor", axis: str) -> go.Heatmap:
    """Thought × channel; the channel's own number shows on hovering."""
    thoughts = [thought + 1 for thought in range(len(values))]
    return go.Heatmap(
        z=values.tolist(),
        y=thoughts,
        customdata=[order.tolist()] * len(values),
        coloraxis=axis,
        hovertemplate="thought %{y}, channel %{customdata}: %{z:.3f}<extra></extra>",
    )


def _scales(figure: go.Figure, found: "ThoughtGates") -> None:
    """A colour bar for each row of heat maps, as high as the row."""
    widest = float(found.before.nan_to_num().abs().max())
    spread = float(found.after_sd.nan_to_num().max())
    looks = (
        {"colorscale": "Viridis", "cmin": 0, "cmax": 1},
        {"colorscale": "Magma", "cmin": 0, "cmax": max(spread, 0.01)},
        {"colorscale": "RdBu", "cmin": -max(widest, 0.01), "cmax": max(widest, 0.01)},
    )
    for row, ((title, axis), look) in enumerate(zip(ROWS, looks, strict=True), 1):
        low, high = next(figure.select_yaxes(row=row, col=1)).domain
        bar = {"title": title, "y": (low + high) / 2, "len": high - low, "thickness": 12}
        bar |= {"title_font_size": 11, "tickfont_size": 10}
        figure.update_layout({axis: look | {"colorbar": bar}})


def _lines(figure: go.Figure, found: "ThoughtGates", gate: int) -> None:
    """One gate's mean, spread and saturated shares by thought, with the untrained twin's mean."""
    at = {"row": 4, "col": gate + 1}
    thoughts = [thought + 1 for thought in range(found.mean.shape[1])]
    mean, sd = found.mean[gate], found.sd[gate]
    low, high = (mean - sd).clamp(min=0), (mean + sd).clamp(max=1)
    figure.add_trace(band(thoughts, low.tolist(), high.tolist(), COLOURS[gate]), **at)
    line = {"color": COLOURS[gate], "width": 3}
    ends = {"array": (found.high[gate] - mean).tolist(), "type": "data"}
    ends |= {"arrayminus": (mean - found.low[gate]).tolist()}
    name = ("read", "forget", "write")[gate]
    figure.add_scatter(x=thoughts, y=mean.tolist(), name=name, line=line, error_y=ends, **at)
    for values, dash in ((found.shut[gate], "dot"), (found.open[gate], "dash")):
        thin = {"color": COLOURS[gate], "dash": dash}
        figure.add_scatter(x=thoughts, y=values.tolist(), line=thin, showlegend=False, **at)
    figure.add_scatter(
        x=thoughts,
        y=found.untrained[gate].tolist(),
        name="untrained twin",
        line={"color": CONTROL},
        showlegend=gate == 0,
        **at,
    )
