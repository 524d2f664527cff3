"""What one does to thoughts: how many there are, which gate is shut, what is held or exchanged.

The controls make edits as the box of interventions takes them, and stand before those.
"""

import json
from typing import Any

import streamlit as st

from app import address, choose, session
from app.address import URL
from app.session import Chosen
from app.show import literal
from workbench.instruments.speaking import GATES

MOST = 12  # thoughts that may be asked for
SHUT = {name: place for name, place in zip(("read", "forget", "write"), GATES, strict=True)}
STREAM, THOUGHT = "recurrence.hook_stream", "recurrence.hook_thought"
MEMORY = {"kept": "as it is", "frozen": "nothing is written (w = 0)", "held": "the stream is held"}
ALL = "all"


def asked(chosen: Chosen) -> dict[str, Any]:
    """Thoughts and edits, as `analyse` takes them."""
    layout = session.layout(chosen)
    left, right = st.columns([2, 3], gap="large")
    with left:
        thoughts = _count(layout.n_fillers)
    with right:
        written = choose.edits()
    n = layout.n_fillers if thoughts is None else thoughts
    made = _changes(chosen, n, layout.n_fillers) if n and layout.filler == "latent" else []
    return {"thoughts": thoughts, "edits": [*made, *written]}


def without(chosen: Chosen, asked: dict[str, Any]) -> str | None:
    """Why a run that is asked so thinks no thoughts that one could decode; None if it does."""
    layout = session.layout(chosen)
    if layout.filler == "pause":
        return f"{chosen.name} waits with pause tokens: they are words, and hold no thought."
    if layout.n_fillers if asked["thoughts"] is None else asked["thoughts"]:
        return None
    return (
        f"{chosen.name} is asked without thoughts. Choose a number above 0 to see what they would "
        "hold; what it answers then is not what it was trained for."
    )


def _count(own: int) -> int | None:
    """How many thoughts; None for as many as each run was trained with."""
    options = [choose.AS_TRAINED, *map(str, range(MOST + 1))]
    value = st.select_slider(f"Thoughts, {own} as trained", options, key="thoughts", bind=URL)
    return None if value in (choose.AS_TRAINED, str(own)) else int(value)


def _changes(chosen: Chosen, n: int, own: int) -> list[dict[str, Any]]:
    """Edits of n thoughts; another question lends no more than the run's own number."""
    with st.container(border=True):
        if session.has_gates(chosen):
            gates, memory, swap = st.columns(3, gap="large")
            edits = [*_shut(gates, n), *_held(memory, n)]
        else:
            swap, beside = st.columns([1, 2], gap="large", vertical_alignment="center")
            beside.caption("Gates to shut and a stream to hold are of family agclr.")
            edits = []
        edits += _swapped(swap, chosen, min(n, own))
        if edits:
            st.caption("These choices as edits, which the box of interventions takes as well:")
            st.code(json.dumps(edits), language="json", wrap_lines=True)
    return edits


def _shut(column: Any, n: int) -> list[dict[str, Any]]:
    """Gates that let nothing through from some thought on."""
    shut = column.multiselect("Shut gates", SHUT, key="shut", bind=URL, placeholder="none")
    first = _number(column, "from thought", "from", n)
    loops = list(range(first - 1, n))
    return [{"do": "zero", "place": SHUT[gate], "loops": loops} for gate in SHUT if gate in shut]


def _held(column: Any, n: int) -> list[dict[str, Any]]:
    """The memory as it is after some thought."""
    kinds = MEMORY if n > 1 else {"kept": MEMORY["kept"]}
    address.keep("memory", kinds)
    kind = column.selectbox("Memory", kinds, key="memory", bind=URL, format_func=MEMORY.get)
    after = _number(column, "after thought", "held", max(n - 1, 1))
    if kind == "held":
        return [{"do": "freeze", "place": STREAM, "after": after - 1}]
    loops = list(range(after, n))
    return [{"do": "zero", "place": SHUT["write"], "loops": loops}] if kind == "frozen" else []


def _swapped(column: Any, chosen: Chosen, n: int) -> list[dict[str, Any]]:
    """A thought, or all of them, in the place of which another question's stands."""
    options = [*map(str, range(1, n + 1)), ALL]
    address.keep("swap", options)
    which = column.selectbox(
        "Exchange thought",
        options if n else [],
        index=None,
        key="swap",
        bind=URL,
        placeholder="none",
        help="" if n else "Other questions have no thoughts: the run was trained without",
    )
    seed = column.number_input(
        "for that of the question with seed", 0, 9_999, 1, key="other", bind=URL
    )
    if which is None:
        return []
    other = session.draw(chosen, st.session_state["split"], int(seed))
    answer = session.problem(chosen, other).answer
    column.caption(literal(f"… {other.rpartition('. ')[2]} Its answer: {answer or 'unknown'}"))
    loops = list(range(n)) if which == ALL else [int(which) - 1]
    return [{"do": "patch", "place": THOUGHT, "question": other, "loops": loops}]


def _number(column: Any, label: str, key: str, most: int) -> int:
    """The number of a thought, from 1."""
    numbers = list(range(1, most + 1))
    address.keep(key, numbers)
    return int(column.selectbox(label, numbers, key=key, bind=URL))
