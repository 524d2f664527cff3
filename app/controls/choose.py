"""Controls that several views share."""

from typing import Any

import streamlit as st

from app import session
from app.controls import address
from app.controls.address import URL
from app.controls.show import attempt, literal
from app.controls.upload import upload
from app.session import Chosen
from workbench.edits import EDITS, parse_edits
from workbench.runs import run_folders, where_runs_are
from workbench.settings.config import nearest
from workbench.settings.devices import devices
from workbench.settings.plain_json import parse_json
from workbench.settings.recipe import recipe_names

AS_TRAINED = "as trained"
MOST_LOOPS = 20
ROWS = [50, 100, 200, 500, 1_000, 2_000]
SCALES = {"rms": "√d_model", "state": "the state's own"}
TARGETS = {
    "decoded": "the word that the state decodes to",
    "phi": "Φ, the mean of all words as decoded",
    "bridge": "the true bridge (oracle)",
}
HELP = "The address of the page holds all choices: a link to it shows the same view."
EXAMPLE = '[{"do": "zero", "place": "blocks.0.hook_attn_out", "loops": [1]}]'


def sidebar() -> None:
    """Choose run and device for all views; if there is no run, show how to make one."""
    folders = run_folders()
    names = list(folders)
    if not names:
        recipe = next(iter(recipe_names()), "RECIPE")
        st.info(
            f"There is no run here yet; {literal(where_runs_are())}. "
            f"Or train one: `workbench train {recipe}`"
        )
        upload()
        st.stop()
    # The first readable run, so that a broken one is not everybody's default
    readable = (name for name, path in folders.items() if session.traits(str(path)))
    address.pull("run", next(readable, names[0]))
    wanted = st.session_state["run"]
    address.keep("run", names)
    first = 0 if wanted in names else None
    chosen = st.sidebar.selectbox("Run", names, index=first, key="run")
    st.sidebar.selectbox("Device", devices(), key="device", bind=URL)
    if chosen is None:
        reason = f"There is no run `{wanted}`; {nearest(wanted, names)}\n\n" if wanted else ""
        st.info(f"{reason}Choose a run in the sidebar.")
        st.stop()
    address.push("run")


def run() -> Chosen:
    """Return the run chosen in the sidebar."""
    return _chosen(st.session_state["run"])


def runs() -> list[Chosen]:
    """Return the chosen run, and the run that it is compared with if there is one."""
    first = run()
    others = [name for name in run_folders() if name != first.name]
    address.keep("compare", others)
    second = st.sidebar.selectbox(
        "Compare with", others, index=None, key="compare", bind=URL, placeholder="no other run"
    )
    return [first, _chosen(second)] if second else [first]


def question(chosen: Chosen) -> str:
    """Choose a question: typed, or drawn from a split."""
    found = session.run_of(chosen).task.splits
    first = {"test_id": 0, "test": 1}
    splits = sorted(found, key=lambda split: (first.get(split, 2), split))
    address.keep("split", splits)
    _first_question(chosen, splits[0])
    is_long = session.thinks(chosen)
    if is_long:
        text, beside = st.columns([5, 2], vertical_alignment="top", gap="large")
        asked = text.text_area("Question", key="question", height=140, persist_state="session")
        split = beside.container()
        seed, draw = beside.columns(2, vertical_alignment="bottom")
    else:
        text, split, seed, draw = st.columns([5, 2, 1.5, 1.5], vertical_alignment="bottom")
        asked = text.text_input("Question", key="question", persist_state="session")
    at_once: dict[str, Any] = {"bind": URL, "on_change": _draw, "args": (chosen,)}
    split.selectbox("Draw from", splits, key="split", **at_once)
    seed.number_input("Seed", 0, 9_999, key="seed", **at_once)
    address.push("question")
    draw.button("Draw another", key="draw", width="stretch", on_click=_draw, args=(chosen, 1))
    return asked


def loops() -> int | None:
    """Choose a number of loops; None for as many as each run was trained with."""
    options = [AS_TRAINED, *map(str, range(1, MOST_LOOPS + 1))]
    value = st.select_slider("Loops", options, key="loops", bind=URL)
    return None if value == AS_TRAINED else int(value)


def needs(chosen: Chosen, why: str, **wanted: str) -> None:
    """Stop the view unless the run is of the wanted kind; show why, and which runs are."""
    if lacks(chosen, why, **wanted):
        st.stop()


def lacks(chosen: Chosen, why: str, **wanted: str) -> bool:
    """Return whether a run is not of the wanted kind; if so, show why, and which runs are.

    `wanted` are some of `session.traits`; `why` describes what the view needs.
    """
    if wanted.items() <= session.traits(chosen.path).items():
        return False
    kinds = {name: session.traits(str(path)) for name, path in run_folders().items()}
    fitting = [name for name, kind in kinds.items() if wanted.items() <= kind.items()]
    has = f"these runs have: {', '.join(fitting)}" if fitting else "no run here has"
    st.info(literal(f"{why}, which {chosen.name} has not; {has}."))
    return True


def edits() -> list[dict[str, Any]]:
    """Enter interventions as JSON; if they are wrong, show the error and stop the view."""
    with st.expander("Interventions"):
        text = st.text_area(
            "Edits, as JSON",
            key="edits",
            bind=URL,
            placeholder=EXAMPLE,
            help=f"Kinds: {', '.join(EDITS)}. Loops count from 0.",
        )
    data = attempt(parse_json, text or "[]", "The edits")
    if data is None or attempt(parse_edits, data) is None:
        st.stop()
    return data


def realign() -> dict[str, Any]:
    """Choose how far, to which norm and onto which word's embedding a state is moved."""
    alpha, scale, target = st.columns([3, 1.3, 2], vertical_alignment="bottom", gap="large")
    return {
        "alpha": alpha.slider("α", 0.0, 1.0, 0.5, 0.05, key="alpha", bind=URL),
        "scale": scale.selectbox(
            "Norm", SCALES, key="scale", bind=URL, format_func=SCALES.__getitem__
        ),
        "target": target.selectbox(
            "Embedding of", TARGETS, key="target", bind=URL, format_func=TARGETS.__getitem__
        ),
    }


def n_rows(first: int = 200) -> int:
    """Choose how many rows of each split a sweep uses."""
    return int(st.select_slider("Rows of each split", ROWS, value=first, key="rows", bind=URL))


def step(steps: list[int]) -> int:
    """Choose one of the steps whose weights were kept."""
    if not steps:
        st.info("No weights have been kept yet.")
        st.stop()
    if len(steps) == 1:  # a slider needs two ends
        st.caption(f"Only step {steps[0]:,} was kept.")
        return steps[0]
    address.keep("step", steps)
    # Always in the address: while a run is training, its last step soon changes
    address.pull("step", steps[-1], {str(step): step for step in steps})
    chosen = int(st.select_slider("Step", steps, key="step"))
    address.push("step")
    return chosen


def _chosen(name: str) -> Chosen:
    chosen = Chosen(name, str(run_folders()[name]), st.session_state["device"])
    if attempt(lambda: session.run_of(chosen).task) is None:
        st.stop()
    return chosen


def _first_question(chosen: Chosen, split: str) -> None:
    """Draw a question when the page opens, and replace a drawn question when the run changes."""
    state = st.session_state
    is_drawn = state.get("question") == state.get("drawn", ())
    if "question" not in state or (is_drawn and state["drawn_for"] != chosen):
        asked = (state.get(key, st.query_params.get(key)) for key in ("split", "seed"))
        drawn = session.draw(chosen, *_drawable(chosen, split, *asked))
        state.update(drawn=drawn, drawn_for=chosen)
        if "question" in state:
            state["question"] = drawn
        address.pull("question", drawn)


def _drawable(chosen: Chosen, first: str, split: str | None, seed: object) -> tuple[str, int]:
    """Return the requested split and seed, or `first` and 0 where they are not valid."""
    splits = session.run_of(chosen).task.splits
    known = split if split is not None and split in splits else first
    return known, int(str(seed)) if str(seed).isdecimal() else 0


def _draw(chosen: Chosen, further: int = 0) -> None:
    st.session_state["seed"] += further
    drawn = session.draw(chosen, st.session_state["split"], st.session_state["seed"])
    st.session_state.update(question=drawn, drawn=drawn, drawn_for=chosen)
