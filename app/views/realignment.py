"""View: does the answer change when the bridge's state is moved onto an embedding?"""

import streamlit as st

from app import choose, session
from app.show import attempt, present, show, tiles

st.title("Realignment")
st.caption(
    "Between loops, where the bridge is read, the state H becomes (1 − α) H + α · embedding. "
    "Does the second hop then work, without any training?"
)
chosen = choose.run()
choose.needs(chosen, "readout", "vocabulary", "Realignment moves a bridge onto a word's embedding")
question = choose.question(chosen)
move = choose.realign()
found = attempt(session.analysed, "realigned_answer", chosen, question=question, **move)
if found is not None:
    said = found.result.said[0]
    shares = f"{said['answer_before']:.3f} → {said['answer_after']:.3f}"
    words = {"True answer": "answer", "Says before": "before", "Says after": "after"}
    tiles({label: said[key] for label, key in words.items()} | {"P(true answer)": shares})
    show(found, chosen, "answer")
    st.header("Over all questions")
    present("realignment", chosen, "sweep", scale=move["scale"], n=choose.n_rows())
