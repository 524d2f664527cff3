"""Batches of worded problems, laid out with thoughts, steps and answers."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.tasks.batch import Batch


@dataclass(frozen=True, eq=False)
class WordedBatch(Batch):
    """Rows of a question, optional thoughts, and the target output.

    `answer` is the token that tells the answer from other answers, and `read_at` the position that
    predicts it, given the words before it. `difficulty` counts the steps of the data set's own
    solution.
    """

    scored: Bool[Tensor, "batch pos"]
    """Mask of the tokens that the model should output: remaining steps, answer, end token."""
    prompt: Int[Tensor, " batch"]
    """Number of tokens given before those: question, thoughts and their markers."""
    n_thoughts: Int[Tensor, " batch"]
    """Number of thoughts in each row."""
    candidates: Int[Tensor, "batch 2"]
    """Right and wrong token at the deciding position; −1 without a single wrong candidate."""
    number: Int[Tensor, " batch"]
    """Index of the problem in its split."""

    @property
    def steps(self) -> Int[Tensor, " batch"]:
        """Number of steps of the data set's own solution."""
        return self.difficulty

    def said_at(self) -> tuple[Int[Tensor, "batch said"], Bool[Tensor, "batch said"]]:
        """Return the positions of each row's target tokens, and a mask of those not padding."""
        most = int(self.scored.sum(1).max())
        at = self.prompt[:, None] + torch.arange(most, device=self.tokens.device)
        real = at < self.length[:, None]
        return at.where(real, self.prompt[:, None]), real

    def said_losses(
        self, logits: Float[Tensor, "batch said d_vocab"]
    ) -> Float[Tensor, "batch said"]:
        """Return the cross-entropy of the tokens of `said_at`, in nats; 0 for padding.

        Args:
            logits: Logits at the positions before these tokens.
        """
        at, real = self.said_at()
        wanted = self.tokens.gather(1, at)
        losses = F.cross_entropy(logits.float().movedim(-1, 1), wanted, reduction="none")
        return losses * real

    def prompts(self) -> dict[str, Tensor]:
        """Return the prompts from which a model generates: right-padded tokens and their mask."""
        width = int(self.prompt.max())
        mask = torch.arange(width, device=self.tokens.device) < self.prompt[:, None]
        tokens = self.tokens[:, :width].masked_fill(~mask, 0)
        return {"tokens": tokens, "attention_mask": mask.long()}

    def _columns(self, width: int) -> dict[str, Any]:
        return super()._columns(width) | {"scored": self.scored[:, :width]}
