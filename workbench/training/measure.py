"""Measurements logged during training: every split, after each loop, as plain data."""

from collections.abc import Mapping
from typing import Any

import torch

from workbench.instruments import read
from workbench.instruments.speaking import hear
from workbench.models.loops.depth import DepthModel
from workbench.models.thoughts.thought import ThoughtModel
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask

DRAW = 0  # seed of the rows that are measured: the same ones at every step


def measured_rows(
    task: Task, splits: list[str] | None, n: int, device: str | torch.device
) -> dict[str, Batch]:
    """Return the rows of each split on which the model is measured."""
    return {name: task.batch(name, n, DRAW).to(device) for name in splits or list(task.splits)}


def measure(model: DepthModel, batch: Batch) -> dict[str, Any]:
    """Measure a model that loops on one split, for the history."""
    was_training = model.training
    model.eval()
    reading = read(model, batch)
    model.train(was_training)
    record: dict[str, Any] = {
        "loss": float(reading.loss.mean()),
        "accuracy": reading.accuracy_by_loop[-1],
        "accuracy_by_loop": reading.accuracy_by_loop,
        "bridge_probability_by_loop": reading.bridge_by_loop(reading.bridge_probability),
        "bridge_cosine_by_loop": reading.bridge_by_loop(reading.bridge_cosine),
        "gates": reading.gate_statistics(),
    }
    levels = batch.difficulty.unique().tolist()
    if len(levels) > 1:
        record["accuracy_by_difficulty"] = {
            str(n): float(reading.right[-1, batch.difficulty == n].float().mean()) for n in levels
        }
    return record


def measure_worded(
    model: ThoughtModel, task: WordedTask, split: str, batch: WordedBatch
) -> dict[str, Any]:
    """Measure a model with thoughts on one split by its generated answers, for the history."""
    was_training = model.training
    model.eval()
    heard = hear(model, task, [task.problems(split)[n] for n in batch.number.tolist()], batch)
    model.train(was_training)
    right = torch.tensor([score.right for score in heard.scores], dtype=torch.float)
    record: dict[str, Any] = {
        "loss": float(heard.loss.sum() / batch.scored.sum()),
        "accuracy": float(right.mean()),
        "answered": sum(score.answered for score in heard.scores) / len(batch),
        "gates": heard.gate_statistics(),
        "accuracy_by_difficulty": {
            str(n): float(right[(batch.difficulty == n).cpu()].mean())
            for n in batch.difficulty.unique().tolist()
        },
    }
    overlaps = [score.f1 for score in heard.scores if score.f1 is not None]
    return record | ({"f1": sum(overlaps) / len(overlaps)} if overlaps else {})


def headline(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the accuracies by split in a few characters, for the progress bar."""
    return " ".join(f"{split} {record['accuracy']:.2f}" for split, record in records.items())
