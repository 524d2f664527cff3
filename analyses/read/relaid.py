"""The same questions, put to a model in another way: with fewer thoughts, say."""

from collections.abc import Sequence

from workbench.capabilities import CanThink
from workbench.tasks.worded.layout import Layout, lay_out
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask


def relaid(
    model: CanThink, task: WordedTask, problems: Sequence[Problem], layout: Layout
) -> WordedBatch:
    """Problems, drawn or typed, as rows of this layout on the model's device."""
    encoded = [task.encode(problem) for problem in problems]
    numbers = list(range(len(problems)))
    rows = lay_out(encoded, [layout] * len(problems), task.specials, numbers)
    return rows.to(model.device)


def counts_of(task: WordedTask, problems: Sequence[Problem]) -> range:
    """0 to as many thoughts as any of the problems is given."""
    return range(max(task.layout.fillers_of(len(problem.steps)) for problem in problems) + 1)
