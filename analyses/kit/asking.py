"""Several runs asked the same questions in words."""

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
    """A run and those named to stand beside it, on the same device.

    Raises:
        ConfigError: One of them answers no questions in words, or stands there twice.
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
    """The questions of one run as another is asked them.

    Runs of several seeds have drawn questions of their own, so all are asked the first one's.

    Raises:
        ConfigError: The run does not know the words.
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
    """Which questions a model answers right, in the task's layout or in others."""
    rows = task.lay_out(split, numbers, layouts).to(model.device)
    known = task.problems(split)
    said = speak(model, task, rows)
    pairs = zip(numbers, said, strict=True)
    return torch.tensor([task.score(known[n], task.answer_in(text)).right for n, text in pairs])


def numbers_of(task: WordedTask, split: str, rows: int | None) -> list[int]:
    """The questions of a split that are asked: all, or the first ones.

    Raises:
        ConfigError: None are asked for.
    """
    if rows is not None and rows < 1:
        raise ConfigError(f"rows={rows} must be at least 1")
    return list(range(len(task.problems(split))))[:rows]


def best_guess(task: WordedTask, split: str) -> tuple[str, float]:
    """The best guess that does not reason, and how often it is right."""
    guesses = {"commonest answer": task.majority_rate(split)} | dict(task.shortcuts(split))
    name = max(guesses, key=lambda guess: guesses[guess])
    return name, guesses[name]
