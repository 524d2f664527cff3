"""The same questions in another layout, for example with fewer thoughts."""

from collections.abc import Sequence

from workbench.capabilities import CanThink
from workbench.tasks.worded.layout import Layout, lay_out
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask


def relaid(
    model: CanThink, task: WordedTask, problems: Sequence[Problem], layout: Layout
) -> WordedBatch:
    """Build rows of this layout from problems, drawn or typed, on the model's device."""
    encoded = [task.encode(problem) for problem in problems]
    numbers = list(range(len(problems)))
    rows = lay_out(encoded, [layout] * len(problems), task.specials, numbers)
    return rows.to(model.device)


def counts_of(task: WordedTask, problems: Sequence[Problem]) -> range:
    """Return the numbers of thoughts from 0 to the most that any of the problems gets."""
    return range(max(task.layout.fillers_of(len(problem.steps)) for problem in problems) + 1)
