"""From steps in words to thoughts: which layout a problem has in which epoch.

CoCoNuT (arXiv 2412.06769, section 3): in stage k the first k steps give way to k·c thoughts; in the
stage after the last one all steps do. iCoT (Deng et al. 2024) leaves out more tokens every epoch.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.settings.recipe import CurriculumConfig
from workbench.tasks.worded.layout import ALL, COT, NO_COT, Filler, Layout

STAGED = ("coconut", "no_thought", "pause_as_thought")


def chosen_step(history: Sequence[Mapping[str, Any]]) -> int | None:
    """The step whose weights a curriculum's run ends with: the best of its last stage on `valid`.

    Of equals the first; None where nothing of `valid` was measured.
    """
    valid = [record for record in history if record["split"] == "valid"]
    last = [record for record in valid if record["stage"] == valid[-1]["stage"]]
    return int(max(last, key=lambda record: record["accuracy"])["step"]) if last else None


class Curriculum:
    """The stages of one training."""

    def __init__(self, cfg: CurriculumConfig, longest: int = 0) -> None:
        """Set the stages out.

        Args:
            cfg: What the recipe says.
            longest: Tokens of the longest solution, which icot takes away.
        """
        self.cfg = cfg
        self.longest = longest

    @property
    def last_stage(self) -> int:
        """The stage that training ends in, numbered from 0."""
        if self.cfg.method in STAGED:
            return self.cfg.max_latent_stage + 1
        if self.cfg.method == "icot":
            return math.ceil(self.longest / self.cfg.tokens_per_epoch)
        return 0

    @property
    def most_fillers(self) -> int:
        """Thoughts or pause tokens that a row has at most."""
        if self.cfg.method in ("coconut", "pause_as_thought", "pause"):
            return self.cfg.max_latent_stage * self.cfg.c_thought
        return 0

    def stage(self, epoch: float) -> int:
        """The stage of an epoch; icot's changes with every one."""
        length = 1 if self.cfg.method == "icot" else self.cfg.epochs_per_stage
        # An epoch's end may fall short of the whole number by rounding
        return min(self.cfg.first_stage + int((epoch + 1e-9) // length), self.last_stage)

    def layout(self, stage: int, further: int = 0) -> Layout:
        """How problems are put in a stage.

        Args:
            stage: The stage.
            further: Tokens that icot leaves out beyond the stage's.
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
        """How a finished model is asked."""
        return self.layout(self.last_stage)

    def drawn(self, stage: int, n_steps: int, rng: np.random.Generator) -> Layout:
        """A layout of a training row: the stage's, or by chance another one."""
        cfg = self.cfg
        if cfg.method in STAGED and cfg.uniform_prob and rng.random() < cfg.uniform_prob:
            stage = int(rng.integers(0, n_steps + 1))
        further = 0
        if cfg.method == "icot":
            # P(o) ∝ exp(−smoothing·o)
            further = int(rng.geometric(1 - math.exp(-cfg.smoothing))) - 1 if cfg.smoothing else 0
        return self.layout(stage, further)
