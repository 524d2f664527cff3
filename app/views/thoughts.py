"""View: what a model's thoughts contain, and how its answers depend on them."""

import streamlit as st

from app import session
from app.controls import choose, thought_edits
from app.controls.address import URL
from app.controls.show import attempt, literal, present, show, side_by_side, tiles

NEEDS = "This view follows thoughts"
MORE = {
    "gate_maps": "Gates",
    "thought_search_tree": "Search in the graph",
    "thought_count": "How many thoughts a right answer takes",
    "ablation": "What right answers depend on",
    "concept_probe": "How often wanted words are near",
}

st.title("Thoughts")
st.caption("What is in each thought, what would be said after it, and do right answers need it?")
runs = choose.runs()
choose.needs(runs[0], NEEDS, recurrence="thoughts")
question = choose.question(runs[0])
asked = thought_edits.asked(runs[0], question)


def one(chosen: session.Chosen) -> None:
    """Show one run's thoughts about the question."""
    if choose.lacks(chosen, NEEDS, recurrence="thoughts"):
        return
    of_one = {"question": question} | asked
    problem = attempt(session.problem, chosen, question)
    found = problem and attempt(session.analysed, "answers", chosen, **of_one)
    if found is None:
        return
    last = session.n_thoughts(chosen, question, asked["thoughts"])
    verdict = "right" if found.result.right[-1, 0] else "wrong"
    said = session.answer_in(chosen, found.result.said[-1][0])
    unit = "pause token" if session.layout(chosen).filler == "pause" else "thought"
    after = f"After {last} {unit}{'s' * (last != 1)}, {verdict}"
    tiles({"True answer": problem.answer, after: said or "no answer"})
    if problem.steps:
        st.caption(literal(f"The way there: {' '.join(problem.steps)}"))
    why = thought_edits.without(chosen, asked)
    if why is not None:
        st.info(literal(why))
    else:
        present("concept_probe", chosen, "probe", **of_one)
    show(found, chosen, "answers")
    if "graph" in problem.facts:
        present("thought_search_tree", chosen, "tree", **of_one)
    if why is None and session.has_gates(chosen):
        present("gate_maps", chosen, "gates", **of_one)


def many(chosen: session.Chosen) -> None:
    """Show analyses of one run's thoughts over many questions."""
    if session.thinks(chosen):
        of_many = {"split": split, "n": rows} | asked
        if thought_edits.without(chosen, asked) is None:
            present("memory_retention", chosen, "retention", **of_many)
        if more:
            present(more, chosen, f"many-{more}", **of_many)


side_by_side(runs, one)
st.header("Over many questions")
left, right = st.columns(2, vertical_alignment="bottom", gap="large")
with left:
    rows = choose.n_rows(100)
split = st.session_state["split"]
more = right.selectbox(
    "Measure", MORE, index=None, key="more", bind=URL, format_func=MORE.__getitem__
)
side_by_side(runs, many)
