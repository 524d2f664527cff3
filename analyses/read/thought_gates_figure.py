"""Figure of the concept stream's gates: thought × channel, and means by thought."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.kit.style import COLOURS, CONTROL, band, legend_line, styled

if TYPE_CHECKING:
    from torch import Tensor

    from analyses.read.thought_gates import ThoughtGates

TITLES = (
    "read of the stream",
    "forget of the state",
    "write of the thought",
)
SHARE = ("share", "coloraxis")
SPREAD = ("sd of the share", "coloraxis2")
BEFORE = ("before the σ", "coloraxis3")


def thought_gates_figure(found: "ThoughtGates") -> go.Figure:
    """Draw mean and spread of the shares and the sigmoid's input by channel, and means by thought.

    The spread is left out if there is only one question.
    """
    n_thoughts = found.mean.shape[1]
    many = int(found.n[0]) > 1
    maps = [(SHARE, found.after, TITLES)]
    maps += [(SPREAD, found.after_sd, ("between questions",) * 3)] if many else []
    maps += [(BEFORE, found.before, ("before the σ",) * 3)]
    last = len(maps) + 1
    height = 330 + len(maps) * (110 + 12 * n_thoughts)
    figure = make_subplots(
        last,
        3,
        subplot_titles=[t for *_, titles in maps for t in titles] + ["mean ± sd"] * 3,
        shared_yaxes=True,
        vertical_spacing=58 / height,
        horizontal_spacing=0.03,
        row_heights=[*[0.66 / len(maps)] * len(maps), 0.34],
    )
    for column in range(3):
        for row, ((_, axis), values, _) in enumerate(maps, 1):
            heat = _heat(values[column], found.order, axis)
            figure.add_trace(heat, row=row, col=column + 1)
        _lines(figure, found, column, last)
    for row in range(1, last):
        figure.update_yaxes(autorange="reversed", row=row)
    figure.update_xaxes(showticklabels=False)
    figure.update_xaxes(title="channels, by mean read", title_standoff=4, row=last - 1, col=2)
    figure.update_xaxes(showticklabels=True, title="thought", dtick=1, row=last)
    figure.update_yaxes(range=[0, 1], row=last)
    figure.update_yaxes(title="thought", dtick=max(1, n_thoughts // 4), col=1)
    figure.update_yaxes(title="share", dtick=0.25, row=last, col=1)
    _scales(figure, found, [bar for bar, *_ in maps])
    legend_line(figure, "below .1", "dot")
    legend_line(figure, "above .9", "dash")
    title = "Gates of the concept stream; forget 1 erases the state"
    return styled(figure, title, height)


def _heat(values: "Tensor", order: "Tensor", axis: str) -> go.Heatmap:
    """Draw thought × channel; the hover text shows the channel's index."""
    thoughts = [thought + 1 for thought in range(len(values))]
    return go.Heatmap(
        z=values.tolist(),
        y=thoughts,
        customdata=[order.tolist()] * len(values),
        coloraxis=axis,
        hovertemplate="thought %{y}, channel %{customdata}: %{z:.3f}<extra></extra>",
    )


def _scales(figure: go.Figure, found: "ThoughtGates", bars: Sequence[tuple[str, str]]) -> None:
    """Add a colour bar to each row of heat maps, as high as the row."""
    widest = float(found.before.nan_to_num().abs().max())
    spread = float(found.after_sd.nan_to_num().max())
    looks = {
        SHARE: {"colorscale": "Viridis", "cmin": 0, "cmax": 1},
        SPREAD: {"colorscale": "Magma", "cmin": 0, "cmax": max(spread, 0.01)},
        BEFORE: {"colorscale": "RdBu", "cmin": -max(widest, 0.01), "cmax": max(widest, 0.01)},
    }
    for row, (title, axis) in enumerate(bars, 1):
        low, high = next(figure.select_yaxes(row=row, col=1)).domain
        bar = {"title": title, "y": (low + high) / 2, "len": high - low, "thickness": 12}
        bar |= {"title_font_size": 11, "tickfont_size": 10}
        figure.update_layout({axis: looks[title, axis] | {"colorbar": bar}})


def _lines(figure: go.Figure, found: "ThoughtGates", gate: int, row: int) -> None:
    """Draw one gate's mean, spread and saturated shares by thought, and the twin's mean."""
    at = {"row": row, "col": gate + 1}
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
