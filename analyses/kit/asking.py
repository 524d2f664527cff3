"""Helpers for evaluating several runs on the same worded questions."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from workbench.capabilities import CanThink
from workbench.instruments.speaking import speak
from workbench.kinds import THOUGHTS, worded_task
from workbench.runs import Run, load_run
from workbench.settings.config import ConfigError
from workbench.tasks.worded.layout import Layout
from workbench.tasks.worded.task import WordedTask


def runs_beside(run: Run, beside: Sequence[str]) -> list[Run]:
    """Return a run and the runs to compare it with, on the same device.

    Raises:
        ConfigError: One of them is not on worded problems, or is named twice.
    """
    runs = [run, *(load_run(name, run.device) for name in beside)]
    names = [one.name for one in runs]
    for one in runs:
        if one.task.kind is not THOUGHTS:
            raise ConfigError(f"{one.name} is on {one.recipe.task['name']}, not on worded problems")
        if names.count(one.name) > 1:
            raise ConfigError(f"beside: the run {one.name} is named twice")
    return runs


def task_for(run: Run, first: Run) -> WordedTask:
    """Return the first run's questions in the layout of another run.

    Runs with different seeds have drawn different questions, so all of them get the first run's.

    Raises:
        ConfigError: The run has another vocabulary.
    """
    task, own = worded_task(first.task), worded_task(run.task)
    if run is not first and task.vocabulary.words != own.vocabulary.words:
        raise ConfigError(f"{run.name} has another vocabulary than {first.name}")
    return task.laid_out(own.layout)


def rights(
    model: CanThink,
    task: WordedTask,
    split: str,
    numbers: Sequence[int],
    layouts: Layout | Sequence[Layout] | None = None,
) -> Bool[Tensor, " question"]:
    """Return which questions a model answers right, in the task's layout or in given layouts."""
    rows = task.lay_out(split, numbers, layouts).to(model.device)
    known = task.problems(split)
    said = speak(model, task, rows)
    pairs = zip(numbers, said, strict=True)
    return torch.tensor([task.score(known[n], task.answer_in(text)).right for n, text in pairs])


def numbers_of(task: WordedTask, split: str, rows: int | None) -> list[int]:
    """Return the numbers of a split's questions: all of them, or the first `rows`.

    Raises:
        ConfigError: `rows` is below 1.
    """
    if rows is not None and rows < 1:
        raise ConfigError(f"rows={rows} must be at least 1")
    return list(range(len(task.problems(split))))[:rows]


def best_guess(task: WordedTask, split: str) -> tuple[str, float]:
    """Return the name and the accuracy of the best guess without reasoning."""
    guesses = {"commonest answer": task.majority_rate(split)} | dict(task.shortcuts(split))
    name = max(guesses, key=lambda guess: guesses[guess])
    return name, guesses[name]
