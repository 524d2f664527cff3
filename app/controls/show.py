"""Display of results, and of errors in what the user entered."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from analyses import Analysed
from analyses.kit.export import image, page, why_no_image
from app import session
from app.session import Chosen
from workbench.settings.errors import is_complaint

CONFIG = {"displaylogo": False, "toImageButtonOptions": {"format": "svg"}}


def literal(text: object) -> str:
    """Escape a text so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>$~:|#])", r"\\\1", str(text))


def attempt(ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what `ask` returns; on a user error, show its message and return None."""
    try:
        return ask(*args, **options)
    except Exception as error:
        if not is_complaint(error):
            raise
        st.warning(literal(error), icon=":material/info:")
        return None


def show(
    found: Analysed | None,
    chosen: Chosen,
    key: str,
    on_click: Callable[[list[Any]], None] | None = None,
) -> None:
    """Show a result: its figure, its summary in one line, and ways to export it.

    `on_click` is called with the `customdata` of a point that is clicked on.
    """
    if found is None:
        return
    key = f"{key}-{chosen.name}"
    figure = found.figure()
    clicks: dict[str, Any] = {}
    if on_click is not None:
        clicks = {"on_select": lambda: _clicked(key, on_click), "selection_mode": "points"}
    st.plotly_chart(figure, key=key, theme=None, config=CONFIG, **clicks)
    st.caption(literal(found.summary()))
    with st.expander("Export"):
        st.code(found.code(chosen.name), language="python")
        with st.container(horizontal=True):
            reason = why_no_image()
            if reason is None:
                _download("PNG", lambda: image(figure, "png"), f"{found.name}.png", key)
                _download("SVG", lambda: image(figure, "svg"), f"{found.name}.svg", key)
            _download("HTML", lambda: page(figure), f"{found.name}.html", key)
            _download(
                "CSV", lambda: found.result.to_frame().to_csv(index=False), f"{found.name}.csv", key
            )
            _download("JSON", lambda: json.dumps(found.to_plain()), f"{found.name}.json", key)
        if reason is not None:
            st.caption(f"{reason}; the camera above the figure saves it as SVG.")


def present(name: str, chosen: Chosen, key: str, **options: Any) -> None:
    """Run an analysis and show it."""
    show(attempt(session.analysed, name, chosen, **options), chosen, key)


def side_by_side(runs: list[Chosen], draw: Callable[[Chosen], None]) -> None:
    """Draw one column for each run."""
    for column, chosen in zip(st.columns(len(runs), gap="large"), runs, strict=True):
        with column:
            if len(runs) > 1:
                st.subheader(literal(chosen.name))
            draw(chosen)


def tiles(values: Mapping[str, object]) -> None:
    """Show labelled values in a row, which wraps where space is narrow."""
    with st.container(horizontal=True):
        for label, value in values.items():
            st.metric(label, literal(value), border=True)


def _clicked(key: str, on_click: Callable[[list[Any]], None]) -> None:
    points = st.session_state[key]["selection"]["points"]
    if points and points[0].get("customdata"):
        on_click(points[0]["customdata"])


def _download(label: str, data: Callable[[], str | bytes], name: str, key: str) -> None:
    st.download_button(label, data, name, key=f"{key}-{label}", on_click="ignore")
