"""The training loop, built on `accelerate`: the same recipe runs on CPU, one GPU or several.

The run's folder is written as training proceeds: first the recipe, then the history and saved
steps, a resume point every `save.resume_every` steps, and at the end the final weights and card.
"""

import json
import math
import random
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, gather_object
from torch import Tensor
from tqdm.auto import tqdm

from workbench.instruments import GradientByLoop
from workbench.models import build_model, model_config
from workbench.runs.card import write_card
from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, make_folder, write_tensors, write_text
from workbench.settings.plain_json import (
    fields_of,
    is_file,
    is_number,
    is_whole,
    json_lines,
    read_text,
)
from workbench.settings.recipe import Recipe, SaveConfig, load_recipe
from workbench.tasks.batch import Batch
from workbench.training.best import BestSteps, write_half
from workbench.training.lock import RunLock
from workbench.training.measure import headline
from workbench.training.optimizer import learning_rate, make_optimizer
from workbench.training.resolve import resolve
from workbench.training.resume import load_point, random_state, save_point
from workbench.training.start import start_from

POINT = {"step": (is_whole, "a whole number"), "seconds": (is_number, "a number")}
PART = 32  # least number of rows of similar lengths that run together


class TrainingDiverged(RuntimeError):
    """Error for a loss or gradient that is not finite; the weights are those before that step."""


def train(recipe: Recipe, folder: Path, resume: bool = False, quiet: bool = False) -> Path:
    """Train a model as a recipe specifies, and write the run.

    Args:
        recipe: The recipe.
        folder: Folder of the run.
        resume: Continue a killed run of the same recipe from its resume point, if there is one.
        quiet: Hide the progress bar.

    Returns:
        The run's folder.

    Raises:
        ConfigError: The folder holds another run, or the recipe is invalid.
        TrainingDiverged: Loss or gradient is no longer finite.
    """
    trainer = Trainer(recipe, folder, quiet)
    try:
        trainer.start(resume)
        trainer.run()
    finally:
        trainer.lock.drop()
    return folder


class Trainer:
    """State of one run during training: task, model, optimizer, lessons and files."""

    def __init__(self, recipe: Recipe, folder: Path, quiet: bool = False) -> None:
        self.folder = folder
        self.quiet = quiet
        self.task, self.recipe = resolve(recipe)
        self.cfg = self.recipe.training
        random.seed(recipe.seed)
        np.random.seed(recipe.seed)
        torch.manual_seed(recipe.seed)
        self.model = build_model(model_config(self.recipe.model)).train()
        # With one loop or no thoughts, the weights of the recurrence get no gradient
        between = any(name.startswith("recurrence.") for name, _ in self.model.named_parameters())
        shared = DistributedDataParallelKwargs(find_unused_parameters=between)
        self.accelerator = Accelerator(mixed_precision=self.cfg.precision, kwargs_handlers=[shared])
        if recipe.training.start_from is not None:
            start_from(self.model, recipe.training.start_from, self.task.vocabulary)
        optimizer = make_optimizer(self.model, self.cfg.optimizer)
        self.prepared, self.optimizer = self.accelerator.prepare(self.model, optimizer)
        self.lessons = self.task.kind.lessons(
            self.cfg, self.task, self.model, self.prepared, recipe.seed
        )
        self.best = BestSteps(folder, partial(is_saved, self.cfg.save))
        self.lock = RunLock(folder)
        self.step = 0
        self.seconds = 0.0  # training time so far, over all sessions

    def start(self, resume: bool) -> None:
        """Set up the folder, or load the resume point that it holds."""
        stored = self.folder / "recipe.yaml"
        if is_file(self.folder):
            raise ConfigError(f"{self.folder} is no folder; choose another --out")
        if self.accelerator.is_main_process:
            make_folder(self.folder)
            self.lock.take()
        if stored.exists() and not resume:
            raise ConfigError(
                f"{self.folder} already holds a run; choose another --out, or --resume it"
            )
        if stored.exists():
            self._check_same(stored)
            self._note_threads(load_recipe(stored).threads)
            rank, n = self.accelerator.process_index, self.accelerator.num_processes
            point = load_point(self.folder, self.model, self.optimizer, rank)
            if point is not None:
                before = point.get("processes", 1)
                if before != n and rank == 0:
                    print(
                        f"{self.folder} was trained by {before} processes and goes on "
                        f"with {n}; sums and dropout are not equal to the last bit",
                        file=sys.stderr,
                    )
                fields_of(point, POINT, f"the resume point of {self.folder}")
                self.step, self.seconds = point["step"], point["seconds"]
                self.best.restore(point.get("best", {}))  # older points lack this field
        # Every process must have read the folder before the main process writes to it
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            make_folder(self.folder / "steps")
            write_text(stored, self.recipe.to_yaml())
            cut_history(self.folder / "history.jsonl", self.step)

    def run(self) -> None:
        """Train to the end and write the run's files along the way."""
        try:
            self._run()
        finally:
            self.lock.drop()

    def _run(self) -> None:
        total = self.cfg.steps
        bar = tqdm(
            total=total,
            initial=self.step,
            unit="step",
            desc=self.recipe.name,
            mininterval=1.0,
            disable=self.quiet or not self.accelerator.is_main_process,
        )
        with bar:
            if self.step == 0:
                if self.accelerator.is_main_process:
                    self._save_step()
                self._log(None, 0.0, bar)
            for number in range(self.step, total):
                last = number + 1 == total
                measured = last or (number + 1) % self.cfg.measure.every == 0
                began = time.perf_counter()
                watch = GradientByLoop() if measured else None
                loss, norm = self.update(number, watch)
                self.step = number + 1
                self.seconds += time.perf_counter() - began
                bar.update()
                if measured:
                    bar.set_postfix_str(f"loss {loss:.3f}")
                    self._log(watch, norm, bar)
                self._keep(last)
        self._finish()
        self.accelerator.wait_for_everyone()  # no process may exit while another still needs it

    def update(self, number: int, watch: GradientByLoop | None = None) -> tuple[float, float]:
        """Take one optimiser step.

        Returns:
            The loss and the gradient norm before clipping; zeros without `watch`.
        """
        if self._forgets(number):
            # Moments of the previous stage are useless in this one (Hao et al. 2024)
            fresh = make_optimizer(self.model, self.cfg.optimizer)
            self.optimizer = self.accelerator.prepare(fresh)
        rate = learning_rate(self.cfg.optimizer, number, self.cfg.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with watch.watch(self.model) if watch else nullcontext():
            loss = self._loss(number)
        self.accelerator.backward(loss)
        if watch and self.accelerator.num_processes > 1:
            watch.gather(self._total, self.accelerator.num_processes)
        norm = self.accelerator.clip_grad_norm_(self.prepared.parameters(), self.cfg.optimizer.clip)
        if not bool(torch.isfinite(norm)):
            self.optimizer.zero_grad()
            raise TrainingDiverged(
                f"step {number + 1}: the loss is {float(loss.detach()):g} and the norm of its "
                f"gradient {float(norm):g}; the step was not taken. A lower optimizer.lr or a "
                "longer warmup may help"
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return (float(loss.detach()), float(norm)) if watch else (0.0, 0.0)

    def _loss(self, number: int) -> Tensor:
        """Return this process's part of the mean loss of a batch, times the number of processes."""
        loss = self.lessons.loss(self.lessons.batch(number), number, self._parts)
        return loss * self.accelerator.num_processes

    def _forgets(self, number: int) -> bool:
        """Return whether the optimiser is reset: at the start of each new curriculum stage."""
        curriculum = self.cfg.curriculum
        if curriculum is None or not curriculum.reset_optimizer or number == 0:
            return False
        return self.lessons.stage(number) != self.lessons.stage(number - 1)

    def _total(self, values: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        return self.accelerator.reduce(values.to(self.accelerator.device), "sum")

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """Split this process's rows into parts.

        A single process gets parts of similar lengths. Several processes each get one padded part,
        because each backward pass must match exactly one forward pass.
        """
        if self.accelerator.num_processes == 1:
            return batch.in_parts(PART)
        n, rank = self.accelerator.num_processes, self.accelerator.process_index
        if len(batch) < n:
            raise ConfigError(
                f"{n} processes cannot share a batch of {len(batch)} rows; each needs a row"
            )
        return iter([batch[slice(rank, None, n)].trimmed()])

    def _log(self, watch: GradientByLoop | None, norm: float, bar: "tqdm[Any]") -> None:
        """Append one line per split to the history."""
        if not self.accelerator.is_main_process:
            return
        records = self.lessons.measure(self.step)
        stage = self.lessons.stage(max(self.step - 1, 0))  # stage of the last step taken
        bar.set_description_str(f"{self.recipe.name} {headline(records)}")
        gradient = {
            "learning_rate": self.optimizer.param_groups[0]["lr"] if watch else None,
            "gradient_norm": norm if watch else None,
            "gradient_norm_by_loop": watch.norms if watch else None,
        }
        where = {
            "step": self.step,
            "epoch": self.lessons.epoch(self.step),
            "stage": stage,
        }
        thoughts = self.lessons.thoughts(max(self.step - 1, 0))
        if thoughts is not None:
            where["thoughts"] = thoughts
        with (self.folder / "history.jsonl").open("a", encoding="utf-8") as file:
            for split, record in records.items():
                line = where | {"split": split} | record | gradient | {"seconds": self.seconds}
                file.write(json.dumps(_without_nan(line), allow_nan=False) + "\n")
        if self.cfg.curriculum is not None and "valid" in records:
            self.best.offer(stage, self.step, records["valid"]["accuracy"], self.model)

    def _keep(self, last: bool) -> None:
        if self.accelerator.is_main_process and (is_saved(self.cfg.save, self.step) or last):
            self._save_step()
        if self.step % self.cfg.save.resume_every == 0 and not last:
            self._save_point()

    def _save_point(self) -> None:
        """Write the resume point, with the random state of every process."""
        everyones = gather_object([random_state()])
        if self.accelerator.is_main_process:
            state = {"step": self.step, "seconds": self.seconds, "best": self.best.plain()}
            state["processes"] = self.accelerator.num_processes
            save_point(self.folder, self.model, self.optimizer.optimizer, state, everyones)

    def _save_step(self) -> None:
        """Save the weights of this step in bfloat16."""
        write_half(self.folder / "steps" / f"{self.step}.safetensors", self.model)

    def _finish(self) -> None:
        self._save_point()
        if not self.accelerator.is_main_process:
            return
        write_card(self.folder, self.recipe, self.task, self.model)
        if self.best.is_settled:  # a finished run that is resumed has its chosen weights already
            return
        final = self.best.last() or self.model.state_dict()
        write_tensors(self.folder / "model.safetensors", final)
        self.best.tidy()

    def _note_threads(self, before: int | None) -> None:
        """Warn if the run began with another number of threads: its last bits may differ."""
        now = self.recipe.threads
        if before is not None and before != now and self.accelerator.is_main_process:
            print(
                f"{self.folder} was begun with {before} threads and goes on with {now}; sums are "
                "rounded in another order, so that the run is not equal to the last bit",
                file=sys.stderr,
            )

    def _check_same(self, stored: Path) -> None:
        # Validating both models gives fields added since the run began their default values
        ours, theirs = (
            r.model_dump(exclude={"versions", "commit", "threads", "name", "about"})
            | {"model": model_config(r.model).model_dump()}
            for r in (self.recipe, load_recipe(stored))
        )
        if ours != theirs:
            changed = [key for key in ours if ours[key] != theirs[key]]
            raise ConfigError(
                f"{self.folder} holds a run of another recipe (it differs in "
                f"{', '.join(changed)}); resume with the recipe it was begun with"
            )


def _without_nan(value: Any) -> Any:
    """Replace non-finite numbers in plain data by None, because JSON has no NaN or infinity."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_saved(cfg: SaveConfig, step: int) -> bool:
    """Return whether the weights of a step are saved."""
    if step <= cfg.dense_until:
        return step % cfg.dense_every == 0
    return step % cfg.every == 0


def n_saved(cfg: SaveConfig, steps: int) -> int:
    """Return how many of the steps from 0 to `steps` − 1 are saved."""
    dense = min(steps - 1, cfg.dense_until)
    later = (steps - 1) // cfg.every - dense // cfg.every
    return dense // cfg.dense_every + 1 + later


def cut_history(path: Path, step: int) -> None:
    """Drop measurements later than `step` (all if it is 0) and any half-written last line."""
    if not path.exists():
        return
    kept = []
    with suppress(FileError):  # a broken line and everything after it are dropped
        for where, record in json_lines(read_text(path), str(path)):
            fields_of(record, {"step": POINT["step"]}, where)
            if record["step"] <= step and step:
                kept.append(json.dumps(record, allow_nan=False))
    write_text(path, "".join(line + "\n" for line in kept))
