"""Controls of a graph's figure: loop, probe and head."""

from typing import Any

import streamlit as st

from analyses.graphs.graph_states import PROBES
from app.controls import address
from app.controls.address import URL

MEAN = "mean of all"
WORDS = {"within r edges": "within r edges", "reachable": "reachable at all"}


def view(n_loops: int, n_heads: int) -> dict[str, Any]:
    """Choose the loop (numbered from 0), probe and head that the figure shows."""
    after, probe, head = st.columns([3, 1.4, 1.4], vertical_alignment="bottom", gap="large")
    loops = list(range(1, n_loops + 1))
    address.keep("after", loops)
    heads = [MEAN, *map(str, range(n_heads))]
    address.keep("head", heads)
    shown = 1
    if n_loops > 1:  # a slider needs two ends
        shown = after.select_slider("After loop", loops, value=n_loops, key="after", bind=URL)
    asked = probe.selectbox(
        "Probe asks", PROBES, key="probe", bind=URL, format_func=WORDS.__getitem__
    )
    seen = head.selectbox("Attention of head", heads, key="head", bind=URL)
    return {"loop": shown - 1, "probe": asked, "head": None if seen == MEAN else int(seen)}
