"""View: how a run was trained, measurement by measurement and step by step."""

import streamlit as st

from app import session
from app.controls import choose
from app.controls.show import attempt, present, show, side_by_side

st.title("Training")
runs = choose.runs()
LOOPS = "When does reading after loop 1 stop working, and what happens to the bridge then?"
THOUGHTS = "What does each stage, with more steps given up for thoughts, do to what is said?"
st.caption(THOUGHTS if session.thinks(runs[0]) else LOOPS)
is_live = any(session.is_training(chosen) for chosen in runs)


def curves(chosen: session.Chosen) -> None:
    """Show one run's history."""
    if session.is_training(chosen):
        st.caption("In training: this part is drawn anew every few seconds.")
    if not session.thinks(chosen):
        show(attempt(session.of_training, "stage_collapse", chosen), chosen, "collapse")
    show(attempt(session.of_training, "training_curves", chosen), chosen, "curves")


@st.fragment(run_every=3 if is_live else None)
def followed() -> None:
    """Show the histories, and refresh them while a run is training."""
    side_by_side(runs, curves)


followed()
st.header("One question over training")
question = choose.question(runs[0])
step = choose.step(session.run_of(runs[0]).steps)


def said(chosen: session.Chosen) -> None:
    """Show one run's output for the question at the chosen step."""
    lens = session.has_words(chosen) and not session.thinks(chosen)
    name = "logit_lens" if lens else "answers"
    present(name, chosen, "lens", question=question, step=step)


side_by_side(runs, said)
