"""Figure of a concept probe: shares of target words by thought, and the first question's words."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.kit.labels import literal
from analyses.kit.style import COLOURS, CONTROL, legend_line, styled

if TYPE_CHECKING:
    from analyses.read.concept_probe import ConceptProbe

LISTED = 3  # words that fit into a cell
LOWEST = 180  # pixels; the colour scale needs this height


def concept_figure(found: "ConceptProbe") -> go.Figure:
    """Draw the shares by view (unless there is one question), above the first question's words."""
    n_views, n_thoughts = len(found.views), found.values.shape[1]
    cells = max(70 + 58 * n_thoughts, LOWEST)
    if found.n_questions == 1:
        figure = make_subplots(1, 1)
        _table(figure, found, 1)
        return styled(figure, "Nearest words after each thought", 150 + cells)
    height = 480 + cells
    figure = make_subplots(
        2,
        n_views,
        specs=[[{}] * n_views, [{"colspan": n_views}, *[None] * (n_views - 1)]],
        subplot_titles=[*found.views, "nearest words of the first question"],
        row_heights=[250, cells],
        vertical_spacing=90 / height,
        horizontal_spacing=0.02,
        shared_yaxes=True,
    )
    for view in range(n_views):
        _shares(figure, found, view)
    legend_line(figure, "control: words of another question", "dash")
    legend_line(figure, f"{found.nearest} words by chance", "dot", CONTROL)
    figure.update_yaxes(range=[-0.03, 1.03], row=1)
    figure.update_yaxes(title="share", row=1, col=1)
    figure.update_xaxes(title="after thought", dtick=max(1, n_thoughts // 6), row=1)
    _table(figure, found, 2)
    title = f"How often is a wanted word among the {found.nearest} nearest?"
    return styled(figure, title, height)


def _shares(figure: go.Figure, found: "ConceptProbe", view: int) -> None:
    """Draw how often each target word is among the nearest, by thought, with its control."""
    at = {"row": 1, "col": view + 1}
    thoughts = [thought + 1 for thought in range(found.values.shape[1])]
    for thing, name in enumerate(found.things):
        share, low, high = found.found[view, thing]
        if not bool(share.isfinite().any()):
            continue
        colour = COLOURS[thing]
        bars = {"array": (high - share).tolist(), "arrayminus": (share - low).tolist()}
        figure.add_scatter(
            x=thoughts,
            y=share.tolist(),
            name=name,
            mode="lines+markers",
            line={"color": colour},
            error_y=bars | {"type": "data"},
            showlegend=view == 0,
            **at,
        )
        figure.add_scatter(
            x=thoughts,
            y=found.shuffled[view, thing, 0].tolist(),
            mode="lines",
            line={"color": colour, "dash": "dash"},
            showlegend=False,
            **at,
        )
    chance = found.nearest / found.n_vocab
    figure.add_hline(y=chance, line={"color": CONTROL, "dash": "dot"}, **at)


def _table(figure: go.Figure, found: "ConceptProbe", row: int) -> None:
    """Draw view × thought; a cell lists its nearest words, coloured by the first one's value."""
    thoughts = list(range(found.values.shape[1]))
    text = [
        ["<br>".join(map(literal, words[thought][:LISTED])) for words in found.words]
        for thought in thoughts
    ]
    figure.add_heatmap(
        z=found.values[:, :, 0].T.tolist(),
        x=list(found.views),
        y=[f"{thought + 1}" for thought in thoughts],
        text=text,
        texttemplate="%{text}",
        hovertemplate="%{x}, thought %{y}<br>%{text}<br>first: %{z:.3f}<extra></extra>",
        colorscale="Viridis",
        zmin=0,
        zmax=1,
        colorbar={
            "title": "cosine or<br>probability",
            "thickness": 12,
            "len": 1 if row == 1 else 0.5,
            "y": 0,
            "yanchor": "bottom",
        },
        row=row,
        col=1,
    )
    figure.update_yaxes(title="thought", type="category", autorange="reversed", row=row, col=1)
    figure.update_xaxes(side="bottom", row=row, col=1)
