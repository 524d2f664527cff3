"""A batch of worded problems, laid out with thoughts, steps and answers."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.tasks.batch import Batch


@dataclass(frozen=True, eq=False)
class WordedBatch(Batch):
    """Rows that hold a question and what is said to it, perhaps after thoughts.

    `read_at` and `answer` are of the token that tells the answer from others, the words before it
    given; `difficulty` counts steps of the data's own solution.
    """

    scored: Bool[Tensor, "batch pos"]
    """Tokens that the model is to say: the steps that are left, the answer, the end."""
    prompt: Int[Tensor, " batch"]
    """Tokens that are given before those: question, thoughts, their markers."""
    n_thoughts: Int[Tensor, " batch"]
    """Thoughts of each row."""
    candidates: Int[Tensor, "batch 2"]
    """Right and wrong token where the answer is decided; the wrong one −1 if any may be."""
    number: Int[Tensor, " batch"]
    """Of the problem in its split."""

    @property
    def steps(self) -> Int[Tensor, " batch"]:
        """Steps of the data's own solution."""
        return self.difficulty

    def said_at(self) -> tuple[Int[Tensor, "batch said"], Bool[Tensor, "batch said"]]:
        """Positions of the tokens that each row is to say, and which of them are real."""
        most = int(self.scored.sum(1).max())
        at = self.prompt[:, None] + torch.arange(most, device=self.tokens.device)
        real = at < self.length[:, None]
        return at.where(real, self.prompt[:, None]), real

    def said_losses(
        self, logits: Float[Tensor, "batch said d_vocab"]
    ) -> Float[Tensor, "batch said"]:
        """Cross-entropy of the tokens of `said_at`, in nats; 0 where a row says no more.

        Args:
            logits: Of the positions before them.
        """
        at, real = self.said_at()
        wanted = self.tokens.gather(1, at)
        losses = F.cross_entropy(logits.float().movedim(-1, 1), wanted, reduction="none")
        return losses * real

    def prompts(self) -> dict[str, Tensor]:
        """What is given before a model speaks: tokens, padded on the right, and their mask."""
        width = int(self.prompt.max())
        mask = torch.arange(width, device=self.tokens.device) < self.prompt[:, None]
        tokens = self.tokens[:, :width].masked_fill(~mask, 0)
        return {"tokens": tokens, "attention_mask": mask.long()}

    def _columns(self, width: int) -> dict[str, Any]:
        return super()._columns(width) | {"scored": self.scored[:, :width]}
