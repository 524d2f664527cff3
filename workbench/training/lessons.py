"""Lessons of a run: its batches, their loss, and the measurements made during training."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.kinds import worded_batch
from workbench.models.loops.depth import DepthModel
from workbench.models.thoughts.thought import ThoughtModel
from workbench.settings.config import ConfigError
from workbench.settings.recipe import TrainingConfig
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.curriculum import Curriculum
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask
from workbench.training.measure import measure, measure_worded, measured_rows
from workbench.training.objective import Objective
from workbench.training.stream import BatchStream, Order

DRAW = 0  # seed of the rows that are measured: the same ones at every step
Split = Callable[[Batch], Iterator[Batch]]


class Lessons(ABC):
    """Batches, loss and measurements of a run; batch i is a pure function of (seed, i)."""

    @abstractmethod
    def batch(self, number: int) -> Batch:
        """Return the rows of one step."""

    @abstractmethod
    def loss(self, batch: Batch, number: int, parts: Split) -> Tensor:
        """Return the mean loss of a batch, computed on the parts into which `parts` splits it."""

    @abstractmethod
    def epoch(self, number: int) -> float:
        """Return how often the training rows have been seen before batch `number`."""

    @abstractmethod
    def measure(self, number: int) -> dict[str, dict[str, Any]]:
        """Measure the model after `number` steps, by split."""

    def stage(self, number: int) -> int:
        """Return the curriculum stage that batch `number` belongs to."""
        return 0

    def thoughts(self, number: int) -> int | None:
        """Return the number of thoughts in the stage of batch `number`; None if the model loops."""
        return None


class LoopLessons(Lessons):
    """Lessons for models that loop: each answer is read at one position, after some loop."""

    def __init__(
        self,
        cfg: TrainingConfig,
        task: Task,
        model: DepthModel,
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> None:
        device = model.device
        self.cfg = cfg
        self.model = model
        self.stream = BatchStream(task, cfg.mixture, cfg.batch_size, seed, device)
        self.measured = measured_rows(task, cfg.measure.splits, cfg.measure.n, device)
        self.objective = Objective(cfg.objective, model, prepared)

    def batch(self, number: int) -> Batch:
        return self.stream.batch(number)

    def loss(self, batch: Batch, number: int, parts: Split) -> Tensor:
        loops: int | Tensor | None = None
        if isinstance(self.cfg.loops, list):
            loops = self.stream.loops(number, *self.cfg.loops)
        total = torch.zeros((), device=batch.tokens.device)
        for part in parts(batch):
            if self.cfg.loops == "hops":
                loops = part.difficulty.clamp(max=self.model.n_loops)
            total = total + self.objective(part, loops)
        return total / len(batch)

    def epoch(self, number: int) -> float:
        return self.stream.epoch(number)

    def measure(self, number: int) -> dict[str, dict[str, Any]]:
        return {split: measure(self.model, rows) for split, rows in self.measured.items()}


class WordedLessons(Lessons):
    """Lessons for models with thoughts: solutions are taught in words first, then by thoughts."""

    def __init__(
        self,
        cfg: TrainingConfig,
        task: WordedTask,
        model: ThoughtModel,
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> None:
        if cfg.curriculum is None:
            raise ConfigError("training.curriculum is missing; a worded task needs one")
        self.cfg = cfg
        self.task = task
        self.model = model
        self.prepared = prepared
        self.seed = seed
        solutions = (sum(map(len, e.steps)) for e in task.encoded("train"))
        self.curriculum = Curriculum(cfg.curriculum, max(solutions))
        self.order = Order("train", len(task.problems("train")), seed)
        # With the same seed, a smaller n draws a prefix of these problems
        self.measured = {
            split: task.batch(split, cfg.measure.n, DRAW).number.tolist()  # type: ignore[attr-defined]
            for split in cfg.measure.splits or ("valid",)
        }

    def batch(self, number: int) -> WordedBatch:
        size = self.cfg.batch_size
        numbers = self.order.places(number * size, size).tolist()
        rng = np.random.default_rng([self.seed, zlib.crc32(b"layout"), number])
        stage, encoded = self.stage(number), self.task.encoded("train")
        layouts = [self.curriculum.drawn(stage, len(encoded[n].steps), rng) for n in numbers]
        return self.task.lay_out("train", numbers, layouts).to(self.model.device)

    def loss(self, batch: Batch, number: int, parts: Split) -> Tensor:
        batch = worded_batch(batch)
        total = torch.zeros((), device=batch.tokens.device)
        for part in map(worded_batch, parts(batch)):
            at, _ = part.said_at()
            logits = self.prepared(**part.inputs, logits_at=at - 1)
            total = total + part.said_losses(logits).sum()
        return total / batch.scored.sum()

    def epoch(self, number: int) -> float:
        return number * self.cfg.batch_size / self.order.size

    def stage(self, number: int) -> int:
        return self.curriculum.stage(self.epoch(number))

    def thoughts(self, number: int) -> int | None:
        layout = self.curriculum.layout(self.stage(number))
        return layout.n_fillers if layout.filler == "latent" else 0

    def measure(self, number: int) -> dict[str, dict[str, Any]]:
        layout = self.curriculum.layout(self.stage(max(number - 1, 0)))  # of the last step taken
        found = {}
        for split, numbers in self.measured.items():
            rows = self.task.lay_out(split, numbers, layout).to(self.model.device)
            found[split] = measure_worded(self.model, self.task, split, rows)
        return found
