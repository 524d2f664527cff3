"""View: how many loops each difficulty needs."""

import streamlit as st

from app import session
from app.controls import cell, choose
from app.controls.address import URL
from app.controls.show import attempt, literal, present, show, side_by_side

MORE = {
    "gate_maps": "Gates",
    "convergence": "Convergence of the states",
    "gradient_highway": "Gradient highway",
}
FEW = 100  # rows for the analyses on demand

st.title("The compute frontier")
st.caption("How many loops does how much reasoning take, and how far would guessing come?")
runs = choose.runs()
choose.needs(runs[0], "The frontier is measured over loops", recurrence="loops")
sweep = cell.sweep(runs[0])


def frontier(chosen: session.Chosen) -> None:
    """Show one run's accuracy over loops and difficulty."""
    found = attempt(session.analysed, "compute_frontier", chosen, **sweep)
    show(found, chosen, "frontier", on_click=cell.pick)


def items(chosen: session.Chosen) -> None:
    """Show how one run answers the chosen question, loop by loop."""
    asked = {"loops": result.n_loops, "step": sweep["step"]}
    present("answers", chosen, "answers", question=question, **asked)


side_by_side(runs, frontier)
st.header("Questions of one cell")
found = attempt(session.analysed, "compute_frontier", runs[0], **sweep)
if found is None:
    st.stop()
result = found.result
picked = cell.choose(result.levels.tolist(), result.n_loops, result.unit)
if picked is None:
    st.caption("A click on a cell of the map opens its questions.")
else:
    level, loop = picked
    st.caption(literal(f"As {runs[0].name} answers after loop {loop + 1}; wrong answers first."))
    asked = sweep | {"loops": result.n_loops}
    question = cell.question(session.items(runs[0], level, loop, **asked))
    side_by_side(runs, items)
    cell.hand_on(runs[0], question)
st.header("Gates, convergence, gradients")
more = st.selectbox("Measure", MORE, index=None, key="more", bind=URL, format_func=MORE.__getitem__)


def measured(chosen: session.Chosen) -> None:
    """Show the selected additional measure for one run."""
    present(str(more), chosen, str(more), **sweep | {"n": FEW})


if more:
    side_by_side(runs, measured)
