"""One-line summaries of runs: what they are and how far their training has come."""

import time
from typing import Any

from workbench.runs import Run
from workbench.tasks.worded.curriculum import Curriculum

QUIET = 600  # seconds without a measurement after which a run counts as stopped


def overview(run: Run) -> dict[str, Any]:
    """Return name, family, task, size, progress and last accuracies of a run, as plain data."""
    history = run.history
    step = history[-1]["step"] if history else 0
    return {
        "run": run.name,
        "family": run.recipe.model["family"],
        "task": run.recipe.task["name"],
        "loops": run.recipe.model.get("n_loops", 1),
        "thoughts": _thoughts(run),
        "parameters": run.n_parameters,
        "state": state(run),
        "step": step,
        "steps": run.recipe.training.steps,
        "accuracy": {r["split"]: r["accuracy"] for r in history if r["step"] == step},
        "about": run.recipe.about,
    }


def _thoughts(run: Run) -> int | None:
    """Return the number of thoughts at the end of training; None without a curriculum."""
    curriculum = run.recipe.training.curriculum
    if curriculum is None:
        return None
    layout = Curriculum(curriculum).final()
    return layout.n_fillers if layout.filler == "latent" else 0


def state(run: Run) -> str:
    """Return `finished`, `in training` or `stopped` (no measurement for `QUIET` seconds)."""
    if run.is_finished:
        return "finished"
    log = run.path / "history.jsonl"
    lately = log.exists() and time.time() - log.stat().st_mtime < QUIET
    return "in training" if lately else "stopped"
