"""Controls of a compute frontier: rows and loops, a cell, and a question in the cell."""

from typing import Any

import streamlit as st

from app import session
from app.controls import address
from app.controls.address import URL
from app.controls.show import literal
from app.session import Chosen

ALL = "all there are"
FINAL = "final"
MOST_LOOPS = 40
ROWS = [100, 200, 500, 1_000, 2_000, 4_000]


def sweep(chosen: Chosen) -> dict[str, Any]:
    """Choose the rows, loops and weights with which a frontier is measured."""
    run = session.run_of(chosen)
    splits, first = list(run.task.splits), run.task.default_split
    steps = [*map(str, run.steps), FINAL]
    address.keep("of", splits)
    address.keep("weights", steps)
    split, rows, most, step = st.columns([1.4, 2, 2, 2], vertical_alignment="bottom", gap="large")
    loops = [ALL, *map(str, range(1, MOST_LOOPS + 1))]
    shown = most.select_slider("Loops up to", loops, key="most", bind=URL)
    weights = step.select_slider("Weights of step", steps, value=FINAL, key="weights", bind=URL)
    return {
        "split": split.selectbox("Split", splits, index=splits.index(first), key="of", bind=URL),
        "n": rows.select_slider("Rows in all", ROWS, value=500, key="sample", bind=URL),
        "loops": None if shown == ALL else int(shown),
        "step": None if weights == FINAL else int(weights),
    }


def choose(levels: list[int], n_loops: int, unit: str) -> tuple[int, int] | None:
    """Choose a difficulty and a loop, numbered from 0; None until a difficulty is chosen."""
    address.keep("level", levels)
    address.keep("after", range(1, n_loops + 1))
    left, right = st.columns([1, 3], vertical_alignment="bottom", gap="large")
    level = left.selectbox(
        unit.capitalize(), levels, index=None, key="level", bind=URL, placeholder="click on a cell"
    )
    if n_loops == 1:
        return None if level is None else (level, 0)
    loops = list(range(1, n_loops + 1))
    after = right.select_slider("After loop", loops, value=n_loops, key="after", bind=URL)
    return None if level is None else (level, after - 1)


def pick(cell: list[Any]) -> None:
    """Select the cell that was clicked on."""
    st.session_state.update(level=int(cell[0]), after=int(cell[1]) + 1)
    st.session_state.pop("item", None)


def question(rows: list[dict[str, Any]]) -> str:
    """Show a table of questions and choose one of them."""
    share = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.3f", width=90)
    st.dataframe(
        [{"no.": number} | row for number, row in enumerate(rows)],
        hide_index=True,
        column_config={"P(true)": share, "question": st.column_config.TextColumn(width="large")},
        key="items",
        on_select=_pick_item,
        selection_mode="single-row",
        height=240,
    )
    address.keep("item", range(len(rows)))
    number = st.number_input("Question no.", 0, len(rows) - 1, key="item", bind=URL, width=160)
    asked = str(rows[int(number)]["question"])
    st.markdown(f"{rows[int(number)]['verdict'].capitalize()}: **{literal(asked)}**")
    return asked


def hand_on(chosen: Chosen, question: str) -> None:
    """Set the other views' question, and link to the views that can show it."""
    st.session_state["question"] = question
    address_of = {"run": chosen.name, "question": question}
    views = {"question": "Question"}
    if session.run_of(chosen).task.perception == "nodes":
        views["graph"] = "Graph"
    with st.container(horizontal=True):
        for view, title in views.items():
            st.page_link(
                f"views/{view}.py",
                label=f"Open in {title}",
                icon=":material/open_in_new:",
                query_params=address_of,
            )


def _pick_item() -> None:
    rows = st.session_state["items"]["selection"]["rows"]
    if rows:
        st.session_state["item"] = rows[0]
