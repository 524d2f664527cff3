"""What training logs: every split, read after each loop, as plain data."""

from collections.abc import Mapping
from typing import Any

import torch

from workbench.instruments import read
from workbench.models.depth import DepthModel
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch

DRAW = 0  # seed of the rows that are measured: the same ones at every step


def measured_rows(
    task: Task, splits: list[str] | None, n: int, device: str | torch.device
) -> dict[str, Batch]:
    """The rows of each split that measurements look at."""
    return {name: task.batch(name, n, DRAW).to(device) for name in splits or list(task.splits)}


def measure(model: DepthModel, batch: Batch) -> dict[str, Any]:
    """One split's measurements, for the history."""
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


def headline(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Accuracies by split in a few characters, for the progress bar."""
    return " ".join(f"{split} {record['accuracy']:.2f}" for split, record in records.items())
