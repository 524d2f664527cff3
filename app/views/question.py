"""View: one question, loop by loop."""

from typing import Any

import streamlit as st

from app import session
from app.controls import choose
from app.controls.show import attempt, literal, present, show, side_by_side, tiles

LONGEST = 24  # most positions at which an attention pattern is still readable

st.title("One question, loop by loop")
st.caption("What does each loop say at each position, is the bridge known, and who looks where?")
runs = choose.runs()
choose.needs(runs[0], "This view follows loops", recurrence="loops")
question = choose.question(runs[0])
left, right = st.columns([2, 3], gap="large")
with left:
    loops = choose.loops()
with right:
    edits = choose.edits()


def view(chosen: session.Chosen) -> None:
    """Show one run's answer to the question."""
    if choose.lacks(chosen, "This view follows loops", recurrence="loops"):
        return
    facts = attempt(session.facts, chosen, question)
    if facts is not None:
        answer = in_words if session.has_words(chosen) else by_yes_or_no
        answer(chosen, facts, {"question": question, "loops": loops, "edits": edits})


def in_words(chosen: session.Chosen, facts: dict[str, Any], asked: dict[str, Any]) -> None:
    """Show logit lens, bridge and attention."""
    lens = attempt(session.analysed, "logit_lens", chosen, **asked)
    if lens is None:
        return
    said, share = lens.result.said[0]
    true = {"Bridge": ", ".join(facts["bridges"]) or "none", "True answer": facts["answer"]}
    verdict = "right" if said == facts["answer"] else "wrong"
    tiles(
        {"Question": facts["question"]}
        | true
        | {f"Model's answer, {verdict}": f"{said} ({share:.2f})"}
    )
    wide = st.columns(2) if len(runs) == 1 else [st.container(), st.container()]
    with wide[0]:
        show(lens, chosen, "lens")
    with wide[1]:
        if facts["bridges"]:
            present("bridge_alignment", chosen, "bridge", **asked)
        else:
            st.info("A question of one hop has no bridge.")
    present("attention", chosen, "attention", **asked)


def by_yes_or_no(chosen: session.Chosen, facts: dict[str, Any], asked: dict[str, Any]) -> None:
    """Show answers, gates and attention; without a vocabulary, no lens can decode the states."""
    found = attempt(session.analysed, "answers", chosen, **asked)
    if found is None:
        return
    said, share = found.result.said[-1]
    verdict = "right" if said == facts["answer"] else "wrong"
    st.markdown(f"**{literal(facts['question'])}**")
    tiles({"True answer": facts["answer"], f"Model's answer, {verdict}": f"{said} ({share:.2f})"})
    st.caption("The run answers one of two: without a vocabulary no lens can decode its states.")
    show(found, chosen, "answers")
    present("gate_maps", chosen, "gates", **asked)
    if facts["positions"] <= LONGEST:
        present("attention", chosen, "attention", **asked)
    else:
        st.caption(f"Attention is shown of questions of up to {LONGEST} tokens.")


side_by_side(runs, view)
