"""Logits of a thinking model for several alternative continuations of a prompt.

The prompt, including its thoughts, is run once. Each continuation reuses its keys and values.
"""

import copy
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.models.thoughts.thinking import ThoughtsSoFar

if TYPE_CHECKING:
    from workbench.models.thoughts.thought import ThoughtModel


class Continuation:
    """A batch of prompts that have been run and can be continued with any words."""

    def __init__(
        self,
        model: "ThoughtModel",
        tokens: Int[Tensor, "batch pos"],
        attention_mask: Int[Tensor, "batch pos"],
    ) -> None:
        """Run the prompts.

        Args:
            model: The model; hooks that are open on it apply.
            tokens: Token ids, including the thoughts.
            attention_mask: 1 for real tokens; a continuation follows a row's last real token.

        Raises:
            ValueError: A prompt does not fit the model.
        """
        self.model = model
        self.tokens, self.mask = tokens, attention_mask
        self.length = attention_mask.sum(1)
        columns = torch.arange(tokens.shape[1], device=tokens.device)
        self.last = torch.where(attention_mask.bool(), columns, -1).max(1).values
        self._thinking: ThoughtsSoFar | None = None
        self.logits = self._whole() if model.wants_whole else self._by_pass()
        """Logits of the first word of the continuation, `[batch d_vocab]`."""

    def after(
        self, words: Int[Tensor, "batch said"], real: Bool[Tensor, "batch said"]
    ) -> Float[Tensor, "batch said d_vocab"]:
        """Return the logits after each word of a continuation.

        Args:
            words: Token ids of each row's continuation, from its first word.
            real: True for real words; padding is on the right.

        Raises:
            ValueError: Prompt and words together exceed the model's n_ctx.
        """
        longest = int((self.length + real.sum(1)).max())
        if longest > self.model.cfg.n_ctx:
            raise ValueError(
                f"a prompt and its continuation are {longest} tokens; the model's n_ctx is "
                f"{self.model.cfg.n_ctx}"
            )
        if self._thinking is None:
            return self._recomputed(words, real)
        thinking = copy.copy(self._thinking)
        thinking.earlier = thinking.earlier.branched()
        n_prompt, n_said = self.tokens.shape[1], words.shape[1]
        said = torch.arange(n_said, device=words.device)
        positions = (self.length[:, None] + said).where(real, 0)
        clock = self.model.clock
        clock.loop = thinking.passes.n
        clock.columns = (n_prompt + said).expand_as(words).where(real, -1)
        try:
            states = thinking.run(self.model.embed(words), positions, real)
        finally:
            clock.loop = clock.columns = None
        return self.model.unembedded(states)

    def _by_pass(self) -> Float[Tensor, "batch d_vocab"]:
        passes = self.model.plan(self.tokens, self.mask)
        thinking = ThoughtsSoFar(self.model, self.tokens, passes)
        states = passes.assemble([thinking.run_pass(n) for n in self.model.ticks(passes)])
        self._thinking = thinking
        rows = torch.arange(len(states), device=states.device)
        return self.model.unembedded(states[rows, self.last])

    def _whole(self) -> Float[Tensor, "batch d_vocab"]:
        model, mask = self.model, self.mask
        return model(self.tokens, attention_mask=mask, logits_at=self.last, recompute=True)

    def _recomputed(self, words: Tensor, real: Tensor) -> Float[Tensor, "batch said d_vocab"]:
        tokens = torch.cat((self.tokens, words), dim=1)
        mask = torch.cat((self.mask, real.to(self.mask)), dim=1)
        logits = self.model(tokens, attention_mask=mask, recompute=True)
        return logits[:, self.tokens.shape[1] :]
