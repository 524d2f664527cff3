"""Controls for thoughts: their number, shut gates, held memory and exchanged thoughts.

The controls make edits in the format of the interventions box. They are applied before those
written in the box.
"""

import json
from typing import Any

import streamlit as st

from app import session
from app.controls import address, choose
from app.controls.address import URL
from app.controls.show import literal
from app.session import Chosen
from workbench.instruments.speaking import GATES

MOST = 12  # largest number of thoughts on offer
SHUT = dict(zip(("read", "forget", "write"), GATES, strict=True))
STREAM, THOUGHT = "recurrence.hook_stream", "recurrence.hook_thought"
KEPT, FROZEN, HELD = MEMORY = ("as it is", "write frozen", "stream held")
WIDE = 264  # width of a group of controls in pixels; groups wrap where three do not fit
ALL = "all"
HELP = (
    "Write frozen: w = 0 in all later thoughts, while the stream is still normed. Stream held: it "
    "stays exactly as the thought left it."
)


def asked(chosen: Chosen, question: str) -> dict[str, Any]:
    """Choose thoughts and edits, and return them as arguments of `analyse`."""
    layout = session.layout(chosen)
    left, right = st.columns([2, 3], gap="large")
    with left:
        thoughts = _count(layout.n_fillers)
    with right:
        written = choose.edits()
    n = session.n_thoughts(chosen, question, thoughts)
    made = _changes(chosen, n, layout.n_fillers) if n and layout.filler == "latent" else []
    return {"thoughts": thoughts, "edits": [*made, *written]}


def without(chosen: Chosen, asked: dict[str, Any]) -> str | None:
    """Return why a run has no thoughts to decode with these arguments; None if it has some."""
    layout = session.layout(chosen)
    if layout.filler == "pause":
        return f"{chosen.name} waits with pause tokens: they are words, and hold no thought."
    if layout.n_fillers if asked["thoughts"] is None else asked["thoughts"]:
        return None
    return (
        f"{chosen.name} runs without thoughts. Choose a number above 0 to see what they would "
        "hold; what it answers then is not what it was trained for."
    )


def _count(own: int) -> int | None:
    """Choose how many thoughts; None for as many as each run was trained with."""
    options = [choose.AS_TRAINED, *map(str, range(MOST + 1))]
    value = st.select_slider(f"Thoughts, {own} as trained", options, key="thoughts", bind=URL)
    return None if value in (choose.AS_TRAINED, str(own)) else int(value)


def _changes(chosen: Chosen, n: int, own: int) -> list[dict[str, Any]]:
    """Choose edits of n thoughts; another question provides at most the run's own number."""
    with st.container(border=True):
        with st.container(horizontal=True, gap="medium"):
            edits = [*_shut(n), *_held(n)] if session.has_gates(chosen) else []
            edits += _swapped(chosen, min(n, own))
        if edits:
            st.caption("These choices as edits, which the box of interventions takes as well:")
            st.code(json.dumps(edits), language="json", wrap_lines=True)
    return edits


def _shut(n: int) -> list[dict[str, Any]]:
    """Choose gates that let nothing through from some thought on."""
    with st.container(width=WIDE):
        shut = st.multiselect("Shut gates", SHUT, key="shut", bind=URL, placeholder="none")
        first = _number("from thought", "from", n)
    loops = list(range(first - 1, n))
    return [{"do": "zero", "place": SHUT[gate], "loops": loops} for gate in SHUT if gate in shut]


def _held(n: int) -> list[dict[str, Any]]:
    """Choose whether the memory is kept as it is after some thought."""
    kinds = MEMORY if n > 1 else (KEPT,)
    address.keep("memory", kinds)
    with st.container(width=WIDE):
        kind = st.selectbox("Memory", kinds, key="memory", bind=URL, help=HELP)
        after = _number("after thought", "held", max(n - 1, 1))
    if kind == HELD:
        return [{"do": "freeze", "place": STREAM, "after": after - 1}]
    loops = list(range(after, n))
    return [{"do": "zero", "place": SHUT["write"], "loops": loops}] if kind == FROZEN else []


def _swapped(chosen: Chosen, n: int) -> list[dict[str, Any]]:
    """Choose a thought, or all of them, to replace with another question's."""
    options = [*map(str, range(1, n + 1)), ALL] if n else []
    address.keep("swap", options)
    none = "none" if n else "trained without thoughts, so others have none to lend"
    with st.container(width=WIDE):
        which = st.selectbox(
            "Exchange thought", options, index=None, key="swap", bind=URL, placeholder=none
        )
        seed = st.number_input(
            "for that of the question of seed", 0, 9_999, 1, key="other", bind=URL
        )
        if which is None:
            return []
        other = session.draw(chosen, st.session_state["split"], int(seed))
        answer = session.problem(chosen, other).answer
        st.caption(literal(f"… {other.rpartition('. ')[2]} (answer: {answer or 'unknown'})"))
    loops = list(range(n)) if which == ALL else [int(which) - 1]
    return [{"do": "patch", "place": THOUGHT, "question": other, "loops": loops}]


def _number(label: str, key: str, most: int) -> int:
    """Choose the number of a thought, counted from 1."""
    numbers = list(range(1, most + 1))
    address.keep(key, numbers)
    return int(st.selectbox(label, numbers, key=key, bind=URL))
