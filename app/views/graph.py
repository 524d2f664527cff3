"""View: one graph, loop by loop."""

import streamlit as st

from app import session
from app.controls import choose, graph_view
from app.controls.address import URL
from app.controls.show import attempt, present, show, side_by_side

MORE = {"reached_set": "Reached sets", "attention": "Attention along edges"}
ROWS = 200  # graphs for the analyses on demand

st.title("One graph, loop by loop")
st.caption(
    "Which nodes does the model hold to be reached after each loop, and along which edges does it "
    "look?"
)
runs = choose.runs()
choose.needs(runs[0], "This view draws questions that are graphs", perception="nodes")
question = choose.question(runs[0])
left, right = st.columns([2, 3], gap="large")
with left:
    loops = choose.loops()
with right:
    edits = choose.edits()
asked = {"question": question, "loops": loops, "edits": edits}
found = attempt(session.analysed, "graph_states", runs[0], **asked)
if found is None:
    st.stop()
view = graph_view.view(len(found.result.said), found.result.n_heads)


def drawn(chosen: session.Chosen) -> None:
    """Show one run's graph after the chosen loop, and its answers."""
    found = attempt(session.analysed, "graph_states", chosen, **asked)
    if found is not None:
        last = len(found.result.said) - 1
        heads = view | {"loop": min(view["loop"], last)}
        show(attempt(found.shown, **heads), chosen, "graph")
        present("answers", chosen, "answers", **asked)


side_by_side(runs, drawn)
st.header("Over many graphs")
more = st.selectbox("Measure", MORE, index=None, key="many", bind=URL, format_func=MORE.__getitem__)


def measured(chosen: session.Chosen) -> None:
    """Show the selected additional measure for one run."""
    present(str(more), chosen, str(more), n=ROWS, loops=loops)


if more:
    side_by_side(runs, measured)
