"""Upload of a run as a zip, which is checked before anything in it is opened."""

from pathlib import Path
from typing import Any

import streamlit as st

from app.controls.show import attempt
from workbench.runs.archive import unpack_run

RUNS = Path("runs")
HELP = (
    "A zip of a run's folder: recipe.yaml, history.jsonl, model.safetensors, card.md and steps/. "
    "It is put below `runs/`, where all who use this page see it."
)


def upload() -> None:
    """Show a chooser for a zip, a field for its name, and a button that adds it to the runs."""
    with st.expander("Upload a run"):
        file = st.file_uploader("Zip of a run", "zip", key="upload", help=HELP)
        name = st.text_input("Name of the run", Path(file.name).stem if file else "")
        st.button("Add", key="add", disabled=file is None, on_click=_add, args=(file, name))


def _add(file: Any, name: str) -> None:
    folder = attempt(unpack_run, file, RUNS, name)
    if folder is not None:
        st.session_state["run"] = folder.name
        st.toast(f"{folder.name} is among the runs now.")
