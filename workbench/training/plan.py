"""Dry run of a recipe: what it would train, and at what cost."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.components.products import weights_in_products
from workbench.instruments.flops import forward_flops
from workbench.models import build_model, model_config
from workbench.models.loops.depth import DepthModel
from workbench.models.thoughts.thought import ThoughtModel
from workbench.settings.recipe import Recipe, TrainingConfig
from workbench.tasks import Task
from workbench.tasks.worded.task import WordedTask
from workbench.training.lessons import WordedLessons
from workbench.training.resolve import resolve
from workbench.training.stream import BatchStream
from workbench.training.trainer import n_saved

LOOKED_AT = 8  # batches from which the operations of a curriculum are estimated


class Amount(NamedTuple):
    """Rows, epochs and operations of a training, which depend on the kind of task."""

    rows: dict[str, str]
    epochs: str
    flops: float
    best: int = 0  # steps saved in addition to those of `training.save`: the best of each stage


def plan(recipe: Recipe, folder: Path) -> str:
    """Return the resolved recipe and its cost as text: parameters, operations, epochs, bytes."""
    task, resolved = resolve(recipe)
    model = build_model(model_config(resolved.model))
    cfg = resolved.training
    amount = task.kind.amount(cfg, task, model, resolved.seed)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    saved = n_saved(cfg.save, cfg.steps) + 1 + amount.best
    megabytes = (saved * 2 + 4) * n_parameters / 1e6
    rows = "; ".join(f"{split} {rows}" for split, rows in amount.rows.items())
    return (
        f"{resolved.to_yaml()}\n"
        f"# writes to      {folder}\n"
        f"# parameters     {n_parameters:,}\n"
        f"# rows           {rows}\n"
        f"# epochs         {amount.epochs}\n"
        f"# operations     {amount.flops:.2e}, forward and backward\n"
        f"# saved weights  {saved} steps, {megabytes:.1f} MB in all"
    )


def of_loops(cfg: TrainingConfig, task: Task, model: DepthModel, seed: int) -> Amount:
    """Estimate the cost of training a model that loops."""
    stream = BatchStream(task, cfg.mixture, cfg.batch_size, seed)
    tokens = int(stream.batch(0).length.sum())
    loops = sum(cfg.loops) / 2 if isinstance(cfg.loops, list) else None
    return Amount(
        {split: f"{len(batch):,}" for split, batch in task.splits.items()},
        f"{stream.epoch(cfg.steps):.0f} of {stream.main_split}",
        cfg.steps * tokens * flops_per_token(model, loops),
    )


def of_thoughts(cfg: TrainingConfig, task: WordedTask, model: ThoughtModel, seed: int) -> Amount:
    """Estimate the cost of training a model with thoughts."""
    lessons = WordedLessons(cfg, task, model, model, seed)
    stages = sorted({lessons.stage(0), lessons.stage(cfg.steps - 1)})
    looked_at = np.linspace(0, cfg.steps - 1, LOOKED_AT).astype(int).tolist()
    flops = 0.0
    for batch in map(lessons.batch, looked_at):
        rows = zip(batch.length, batch.n_thoughts, batch.scored.sum(1), strict=True)
        # The last token is only predicted, not run through the model
        flops += sum(forward_flops(model, int(n) - 1, int(k), int(said)) for n, k, said in rows)
    return Amount(
        {split: _rows(task, split) for split in task.split_names},
        f"{lessons.epoch(cfg.steps):.1f} of train, stage {' to '.join(map(str, stages))} "
        f"of {lessons.curriculum.last_stage}",
        3 * cfg.steps * flops / LOOKED_AT,
        stages[-1] - stages[0] + 1,
    )


def _rows(task: WordedTask, split: str) -> str:
    """Describe how many problems a split has, and how many are too long or cannot be answered."""
    kept = f"{len(task.problems(split)):,}"
    notes = {"too long": task.left_out.get(split, 0)}
    notes["answers with unknown words"] = task.unsayable(split)
    told = ", ".join(f"{n:,} {what}" for what, n in notes.items() if n)
    return f"{kept} ({told})" if told else kept


def flops_per_token(model: DepthModel, n_loops: float | None = None) -> float:
    """Return the FLOPs of one token's matrix products, forward and backward (3 × 2 × weights used).

    Products that grow with the square of the length, such as attention's, are not counted.
    """
    loops = model.n_loops if n_loops is None else n_loops
    in_loop = weights_in_products(model.blocks)
    around = weights_in_products(model.prelude) + weights_in_products(model.coda)
    # A yes/no head runs once per row, which is little; the unembedding at about every second token
    vocabulary = model.cfg.d_vocab * model.cfg.d_model if model.head is None else 0
    own = model.recurrence.flops(loops, vocabulary)
    return 3.0 * (2.0 * (in_loop * loops + around + vocabulary / 2) + own)
