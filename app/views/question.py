"""View: one question, loop by loop."""

import streamlit as st

from app import choose, session
from app.show import attempt, present, show, side_by_side, tiles

st.title("One question, loop by loop")
st.caption("What does each loop say at each position, is the bridge known, and who looks where?")
runs = choose.runs()
question = choose.question(runs[0])
left, right = st.columns([2, 3], gap="large")
with left:
    loops = choose.loops()
with right:
    edits = choose.edits()


def view(chosen: session.Chosen) -> None:
    """One run's answer to the question."""
    facts = attempt(session.facts, chosen, question)
    if facts is None:
        return
    asked = {"question": question, "n_loops": loops, "edits": edits}
    lens = attempt(session.analysed, "logit_lens", chosen, **asked)
    if lens is None:
        return
    said, share = lens.result.said[0]
    true = {"Bridge": ", ".join(facts["bridges"]) or "none", "True answer": facts["answer"]}
    verdict = "right" if said == facts["answer"] else "wrong"
    tiles(
        {"Question": facts["question"]} | true | {f"Model says, {verdict}": f"{said} ({share:.2f})"}
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


side_by_side(runs, view)
