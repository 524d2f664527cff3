"""View: does the answer change when the bridge's state is moved onto an embedding?"""

import streamlit as st

from app import session
from app.controls import choose
from app.controls.show import attempt, present, show, side_by_side, tiles

st.title("Realignment")
st.caption(
    "Between loops, where the bridge is read, the state H becomes (1 − α) H + α · embedding. "
    "Does the second hop then work, without any training?"
)
runs = choose.runs()
WHY = "Realignment moves states onto words of a vocabulary between loops"
choose.needs(runs[0], WHY, readout="vocabulary", recurrence="loops")
question = choose.question(runs[0])
move = choose.realign()
realigned: list[session.Chosen] = []


def answer(chosen: session.Chosen) -> None:
    """Show one run's answer before and after realignment."""
    found = attempt(session.analysed, "realigned_answer", chosen, question=question, **move)
    if found is None:
        return
    said = found.result.said[0]
    shares = f"{said['answer_before']:.3f} → {said['answer_after']:.3f}"
    words = {"True answer": "answer", "Says before": "before", "Says after": "after"}
    tiles({label: said[key] for label, key in words.items()} | {"P(true answer)": shares})
    show(found, chosen, "answer")
    realigned.append(chosen)


def sweep(chosen: session.Chosen) -> None:
    """Show one run's accuracy over α."""
    if chosen in realigned:
        present("realignment", chosen, "sweep", scale=move["scale"], n=rows)


side_by_side(runs, answer)
if realigned:
    st.header("Over all questions")
    rows = choose.n_rows()
    side_by_side(runs, sweep)
