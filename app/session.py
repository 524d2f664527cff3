"""The page's caches of runs, weights and results. Nothing is cached anywhere else.

All sessions share the loaded models, which are never run themselves. Every computation uses its own
twin, which shares the weights but has its own hooks and loop clock, so that users do not see each
other's edits and do not wait for each other. The cache keys of results are plain values only: the
same request gives the same numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import streamlit as st

from analyses import Analysed, analyse
from analyses.read.answers import Answers
from analyses.read.items import items as of_cell
from workbench.edits import parse_edits, patched_from
from workbench.kinds import worded_task
from workbench.models import FAMILIES
from workbench.models.base import LatentModel
from workbench.runs import Run, load_run
from workbench.runs.overview import overview, state
from workbench.settings.recipe import load_recipe
from workbench.tasks import TASKS
from workbench.tasks.worded.layout import Layout
from workbench.tasks.worded.problem import Problem


@dataclass(frozen=True)
class Chosen:
    """A run's name and folder, and the device to run it on."""

    name: str
    path: str
    device: str

    @property
    def saved_at(self) -> int:
        """Time at which the run's weights were last written, in nanoseconds."""
        steps = sorted(Path(self.path, "steps").glob("*.safetensors"), key=_written)
        return max(map(_written, [Path(self.path, "recipe.yaml"), self._final, *steps[-1:]]))

    @property
    def measured_at(self) -> int:
        """Time at which the run's history was last written, in nanoseconds."""
        return _written(Path(self.path, "history.jsonl"))

    @property
    def _final(self) -> Path:
        return Path(self.path, "model.safetensors")


def analysed(name: str, chosen: Chosen, *, step: int | None = None, **options: Any) -> Analysed:
    """Run one analysis on one run; options are those of `analyse`."""
    where = (chosen.path, chosen.saved_at, chosen.device)
    return _analysed(name, *where, step, _patched(options), options)


def of_training(name: str, chosen: Chosen) -> Analysed:
    """Run one analysis on a run's history."""
    where = (chosen.path, chosen.saved_at, chosen.device)
    return _of_training(name, *where, chosen.measured_at)


def run_of(chosen: Chosen) -> Run:
    """Return the run, for its task and recipe; its model must not be run."""
    return _run(chosen.path, chosen.saved_at, chosen.device)


def facts(chosen: Chosen, question: str) -> dict[str, Any]:
    """Return a typed question's answer, bridges, hops and number of positions.

    Raises:
        ValueError: The text is not a question of the task.
    """
    task = run_of(chosen).task
    rows = task.question(question)
    return task.examples(rows)[0] | {"positions": rows.tokens.shape[1]}


def items(
    chosen: Chosen, level: int, loop: int, split: str, n: int, **options: Any
) -> list[dict[str, Any]]:
    """Return questions of one difficulty with the answers of one loop, numbered from 0."""
    task = run_of(chosen).task
    found = analysed("answers", chosen, split=split, n=n, **options).result
    return of_cell(task, task.batch(split, n), cast(Answers, found), level, loop)


def has_words(chosen: Chosen) -> bool:
    """Return whether a run answers with a word of its vocabulary, rather than with yes or no."""
    return run_of(chosen).task.readout == "vocabulary"


def traits(path: str) -> dict[str, str]:
    """Return recurrence, perception and readout from a run's recipe; empty if unreadable."""
    try:
        recipe = load_recipe(Path(path, "recipe.yaml"))
        task, family = TASKS[recipe.task["name"]], FAMILIES[recipe.model["family"]]
    except Exception:  # the list of runs shows the error
        return {}
    return {
        "recurrence": f"{family.kind.unit}s",
        "perception": task.perception,
        "readout": task.readout,
    }


def thinks(chosen: Chosen) -> bool:
    """Return whether a run's model thinks between words rather than loops."""
    return traits(chosen.path).get("recurrence") == "thoughts"


def problem(chosen: Chosen, question: str) -> Problem:
    """Return a typed question for a run that thinks, with steps and answer.

    Raises:
        ValueError: The text is not a question of the task.
    """
    return worded_task(run_of(chosen).task).typed(question)


def layout(chosen: Chosen) -> Layout:
    """Return the layout that a run that thinks had at the end of its training."""
    return worded_task(run_of(chosen).task).layout


def n_thoughts(chosen: Chosen, question: str, thoughts: int | None) -> int:
    """Return a question's number of thoughts; `thoughts` is None for as many as in training."""
    asked = layout(chosen)
    if thoughts is not None:
        asked = asked.with_fillers(thoughts)
    try:
        return asked.fillers_of(len(problem(chosen, question).steps))
    except ValueError:  # not a question; the view shows the error
        return asked.n_fillers


def answer_in(chosen: Chosen, said: str) -> str:
    """Return the answer in the output of a run that thinks."""
    return worded_task(run_of(chosen).task).answer_in(said)


def has_gates(chosen: Chosen) -> bool:
    """Return whether a run that thinks has a stream with gates."""
    return "recurrence.hook_stream" in run_of(chosen).model.hook_dict


def draw(chosen: Chosen, split: str, seed: int) -> str:
    """Draw a question from a split."""
    return run_of(chosen).task.draw(split, seed)


def line(path: str) -> dict[str, Any]:
    """Return a run as one row of a table; for an unreadable run, the row gives the error."""
    try:
        return overview(load_run(path))
    except Exception as error:  # one bad run must not hide the others
        return {"run": Path(path).name, "state": f"cannot be read: {error}", "accuracy": {}}


def is_training(chosen: Chosen) -> bool:
    """Return whether measurements of the run may still come in."""
    return state(run_of(chosen)) == "in training"


@st.cache_resource(max_entries=16, show_spinner="Reading the run")
def _run(path: str, saved_at: int, device: str) -> Run:
    return load_run(path, device)


@st.cache_resource(max_entries=32, show_spinner="Reading the weights")
def _weights(path: str, saved_at: int, device: str, step: int | None) -> LatentModel:
    run = _run(path, saved_at, device)
    return run.model if step is None else run.model_at(step)


@st.cache_data(max_entries=256, show_spinner="Computing")
def _analysed(
    name: str,
    path: str,
    saved_at: int,
    device: str,
    step: int | None,
    patched: Mapping[str, str],
    options: Mapping[str, Any],
) -> Analysed:
    run = _run(path, saved_at, device)
    twin = _weights(path, saved_at, device, step).twin()
    return analyse(name, run, step=step, model=twin, **options)


@st.cache_data(max_entries=64, show_spinner="Computing")
def _of_training(name: str, path: str, saved_at: int, device: str, measured_at: int) -> Analysed:
    return analyse(name, _run(path, saved_at, device))  # rereads the history, but not the task


def _patched(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the runs that edits patch from, with hashes of their weights; empty on an error."""
    try:
        return patched_from(parse_edits(list(options.get("edits") or ())))
    except ValueError:  # the analysis reports the error
        return {}


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
