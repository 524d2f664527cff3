"""Answers of a thought model under interventions on its thoughts."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.read.thought_states import THOUGHT
from workbench.capabilities import CanThink
from workbench.hooks import AtLoop, HookFn, HookPoint, at_loop, loop_of
from workbench.instruments.speaking import rows_at_once, speak
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask

# Builds the hooks for a slice of a batch's rows
HooksOfRows = Callable[[slice], list[tuple[str, HookFn | AtLoop]]]


def unchanged(rows: slice) -> list[tuple[str, HookFn | AtLoop]]:
    """Return no hooks."""
    return []


@torch.no_grad()
def said_under(
    model: CanThink, task: WordedTask, batch: WordedBatch, hooks: HooksOfRows = unchanged
) -> list[str]:
    """Generate a model's answer to each row while some hooks are active.

    Args:
        model: The model; hooks that are active on it apply first.
        task: The task; it gives the vocabulary.
        batch: The rows.
        hooks: Builds the additional hooks for a slice of rows.
    """
    said = []
    size = rows_at_once(model, len(batch))
    for start in range(0, len(batch), size):
        rows = slice(start, min(start + size, len(batch)))
        # Hooks at a thought that none of these rows has do not fire
        with model.hooks(fwd_hooks=hooks(rows), must_fire=False):
            said += speak(model, task, batch[rows])
    return [task.answer_in(words) for words in said]


def put_thoughts(
    values: Float[Tensor, "thought batch d_model"], thoughts: Sequence[int]
) -> HooksOfRows:
    """Build hooks that replace some thoughts by vectors; the stream is then updated from these."""

    def hooks(rows: slice) -> list[tuple[str, HookFn | AtLoop]]:
        def put(tensor: Tensor, /, *, hook: HookPoint) -> Tensor:
            loop = loop_of(hook)
            assert loop is not None
            return values[loop, rows].nan_to_num(0.0).to(tensor)

        return [(THOUGHT, at_loop(put, thoughts))]

    return hooks


def of_another_row(
    values: Float[Tensor, "thought batch d_model"],
) -> Float[Tensor, "thought batch d_model"]:
    """Give each row the thoughts of the previous row, among the rows that have such a thought."""
    other = values.clone()
    for thought, present in enumerate(values.isfinite().all(-1)):
        rows = present.nonzero()[:, 0]
        other[thought, rows] = values[thought, rows.roll(1)]
    return other


def mean_row(
    values: Float[Tensor, "thought batch d_model"],
) -> Float[Tensor, "thought batch d_model"]:
    """Replace each thought by its mean over rows."""
    return values.nanmean(1, keepdim=True).expand_as(values)
