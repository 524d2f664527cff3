"""Figures of gates: loop × position, and also loop × channel for gates with many channels."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.kit.labels import loop_label
from analyses.kit.style import COLOURS, CONTROL, band, colour_of, legend_line, styled

if TYPE_CHECKING:
    from torch import Tensor

    from analyses.read.gate_maps import GateMaps

MANY = 10  # with more columns than this, a heat map's cells have no room for a number
TITLES = {
    "α": "Share of the decoded token that each loop adds",
    "z": "Share of the state that each loop replaces",
    "stop": "Probability of stopping after each loop",
}


def position_figure(found: "GateMaps") -> go.Figure:
    """Draw loop × position, with a panel for each split and one for the untrained twin."""
    titles = [*found.splits, "untrained twin"]
    figure = make_subplots(1, len(titles), subplot_titles=titles, shared_yaxes=True)
    for column, values in enumerate([*found.mean, found.untrained[0]]):
        figure.add_trace(_heat(values, found.places), row=1, col=column + 1)
    top = max(1.0, float(found.mean.nan_to_num().max()))
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(type="category", title=found.axis)
    figure.update_layout(
        coloraxis={"colorscale": "Viridis", "cmin": 0, "cmax": top, "colorbar_title": found.symbol}
    )
    return styled(figure, TITLES[found.symbol], height=max(360, 190 + 26 * found.mean.shape[1]))


def channel_figure(found: "GateMaps") -> go.Figure:
    """Draw loop × position, below it loop × channel, below that mean and saturation by loop."""
    n_loops, n_columns = found.mean.shape[1], len(found.splits) + 1
    titles = [*found.splits, "untrained twin", *[f"channels, {s}" for s in found.splits], ""]
    titles += ["mean ± sd over all values", "values below .1 and above .9"]
    height = 560 + 40 * n_loops
    last: list[dict[str, int] | None] = [{"colspan": n_columns - n_columns // 2}]
    last += [None] * (n_columns - n_columns // 2 - 1)
    last += [{"colspan": n_columns // 2}, *[None] * (n_columns // 2 - 1)]
    figure = make_subplots(
        3,
        n_columns,
        specs=[[{}] * n_columns, [{}] * n_columns, last],
        subplot_titles=titles,
        vertical_spacing=110 / height,
        horizontal_spacing=0.05,
        row_heights=[0.37, 0.33, 0.3],
    )
    channels = [str(channel) for channel in range(found.channel.shape[2])]
    for column, values in enumerate([*found.mean, found.untrained[0]]):
        figure.add_trace(_heat(values, found.places), row=1, col=column + 1)
    for column, values in enumerate(found.channel):
        figure.add_trace(_heat(values, channels), row=2, col=column + 1)
    _name_axes(figure, found.axis, n_columns)
    _lines(figure, found, 1 + n_columns - n_columns // 2)
    figure.update_layout(
        coloraxis={
            "colorscale": "Viridis",
            "cmin": 0,
            "cmax": 1,
            "colorbar": {"title": found.symbol, "len": 0.62, "yanchor": "top", "y": 1},
        }
    )
    return styled(figure, TITLES[found.symbol], height)


def _name_axes(figure: go.Figure, axis: str, n_columns: int) -> None:
    """Set titles and ticks of the heat maps; the untrained twin has no channel panel."""
    for row in (1, 2):
        figure.update_yaxes(autorange="reversed", showticklabels=False, row=row)
        figure.update_yaxes(showticklabels=True, row=row, col=1)
    small = {"title": {"font": {"size": 12}}, "tickangle": -90, "tickfont": {"size": 10}}
    figure.update_xaxes(type="category", row=1, **small)
    figure.update_xaxes(title_text=axis, row=1)
    figure.update_xaxes(showticklabels=False, row=2, **small)
    figure.update_xaxes(title_text="channel, by mean", row=2)
    figure.update_xaxes(visible=False, row=2, col=n_columns)
    figure.update_yaxes(visible=False, row=2, col=n_columns)


def _lines(figure: go.Figure, found: "GateMaps", right: int) -> None:
    """Draw the gate's mean, spread and saturated shares by loop."""
    loops = list(range(1, found.overall.shape[1] + 1))
    for i, split in enumerate(found.splits):
        colour = colour_of(split, i) if len(found.splits) > 1 else COLOURS[0]
        mean, sd = found.overall[i], found.overall_sd[i]
        spread = band(loops, (mean - sd).tolist(), (mean + sd).tolist(), colour)
        figure.add_trace(spread, row=3, col=1)
        line = {"color": colour, "width": 3}
        figure.add_scatter(x=loops, y=mean.tolist(), name=split, line=line, row=3, col=1)
        for values, dash in ((found.shut[i], "dot"), (found.open[i], "dash")):
            figure.add_scatter(
                x=loops,
                y=values.tolist(),
                line=line | {"dash": dash},
                showlegend=False,
                row=3,
                col=right,
            )
    untrained = found.untrained[0].nanmean(-1).tolist()
    figure.add_scatter(
        x=loops, y=untrained, name="untrained twin", line={"color": CONTROL}, row=3, col=1
    )
    legend_line(figure, "below .1", "dot")
    legend_line(figure, "above .9", "dash")
    figure.update_xaxes(title="loop", row=3)
    figure.update_yaxes(range=[0, 1], row=3)


def _heat(values: "Tensor", labels: "tuple[str, ...] | list[str]") -> go.Heatmap:
    rows = [loop_label(loop) for loop in range(values.shape[0])]
    shown = {"texttemplate": "%{z:.2f}"} if len(labels) <= MANY else {}
    heat = {"x": list(labels), "y": rows, "coloraxis": "coloraxis", "zhoverformat": ".3f"}
    return go.Heatmap(z=values.tolist(), **heat, **shown)
