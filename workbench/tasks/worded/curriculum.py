"""Curricula from steps in words to thoughts: the layout of the problems in each epoch.

CoCoNuT (arXiv 2412.06769, section 3): in stage k, k·c thoughts replace the first k steps; in one
more stage after the last, all steps are left out. iCoT (Deng et al. 2024) leaves out more tokens
every epoch.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.settings.recipe import CurriculumConfig
from workbench.tasks.worded.layout import ALL, COT, NO_COT, Filler, Layout

STAGED = ("coconut", "no_thought", "pause_as_thought")


def chosen_step(history: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the step whose weights a curriculum run keeps: the last stage's best on `valid`.

    Ties go to the earliest step. Return None if `valid` was never measured.
    """
    valid = [record for record in history if record["split"] == "valid"]
    last = [record for record in valid if record["stage"] == valid[-1]["stage"]]
    return int(max(last, key=lambda record: record["accuracy"])["step"]) if last else None


class Curriculum:
    """The stages of one training run."""

    def __init__(self, cfg: CurriculumConfig, longest: int = 0) -> None:
        """Set up the stages.

        Args:
            cfg: The curriculum's config from the recipe.
            longest: Number of tokens of the longest solution, all of which icot removes.
        """
        self.cfg = cfg
        self.longest = longest

    @property
    def last_stage(self) -> int:
        """The final stage of training, numbered from 0."""
        if self.cfg.method in STAGED:
            return self.cfg.max_latent_stage + 1
        if self.cfg.method == "icot":
            return math.ceil(self.longest / self.cfg.tokens_per_epoch)
        return 0

    @property
    def most_fillers(self) -> int:
        """Largest number of thoughts or pause tokens in a row."""
        if self.cfg.method in ("coconut", "pause_as_thought", "pause"):
            return self.cfg.max_latent_stage * self.cfg.c_thought
        return 0

    def stage(self, epoch: float) -> int:
        """Return the stage of an epoch; with icot, each epoch is a stage of its own."""
        length = 1 if self.cfg.method == "icot" else self.cfg.epochs_per_stage
        # Rounding may put an epoch's end just below the whole number
        return min(self.cfg.first_stage + int((epoch + 1e-9) // length), self.last_stage)

    def layout(self, stage: int, further: int = 0) -> Layout:
        """Return the layout of a stage.

        Args:
            stage: The stage.
            further: Number of tokens that icot leaves out beyond those of the stage.
        """
        cfg = self.cfg
        if cfg.method == "cot":
            return COT
        if cfg.method == "no_cot":
            return NO_COT
        if cfg.method == "pause":
            return Layout("pause", self.most_fillers, marked=False, skipped=ALL)
        if cfg.method == "icot":
            gone = stage >= self.last_stage
            tokens = ALL if gone else stage * cfg.tokens_per_epoch + further
            return Layout(marked=False, skipped_tokens=tokens)
        skipped = ALL if stage > cfg.max_latent_stage else stage
        if cfg.method == "no_thought":
            return Layout(skipped=skipped)
        replaced = min(stage, cfg.max_latent_stage)
        filler: Filler = "latent" if cfg.method == "coconut" else "pause"
        c = cfg.c_thought
        return Layout(
            filler,
            replaced * c,
            skipped=skipped,
            thoughts_per_step=c,
            capped=not cfg.pad_latent_to_max,
        )

    def final(self) -> Layout:
        """Return the layout of the last stage, which a finished model is evaluated with."""
        return self.layout(self.last_stage)

    def drawn(self, stage: int, n_steps: int, rng: np.random.Generator) -> Layout:
        """Draw the layout of a training row: the stage's, or at random another stage's."""
        cfg = self.cfg
        if cfg.method in STAGED and cfg.uniform_prob and rng.random() < cfg.uniform_prob:
            stage = int(rng.integers(0, n_steps + 1))
        further = 0
        if cfg.method == "icot":
            # P(o) ∝ exp(−smoothing·o)
            further = int(rng.geometric(1 - math.exp(-cfg.smoothing))) - 1 if cfg.smoothing else 0
        return self.layout(stage, further)
