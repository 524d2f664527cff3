"""Figures as files; kaleido draws PNG and SVG, and needs Chrome or Chromium."""

from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 1_000  # pixels


def image(figure: "go.Figure", kind: Literal["png", "svg"]) -> bytes:
    """Return a figure as the bytes of an image file."""
    return bytes(figure.to_image(format=kind, width=WIDTH, scale=2))


def page(figure: "go.Figure") -> str:
    """Return a figure as a self-contained HTML page that works offline."""
    return str(figure.to_html(include_plotlyjs=True))


@cache
def why_no_image() -> str | None:
    """Return why no image can be drawn on this machine; None if one can."""
    try:
        import kaleido  # noqa: F401
        from choreographer.browsers.chromium import Chromium
    except ImportError:
        return "PNG and SVG need kaleido: pip install kaleido"
    if Chromium.find_browser(skip_local=False) is None:
        return "PNG and SVG need Chrome or Chromium, and there is none on this machine"
    return None
