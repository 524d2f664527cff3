"""VCoT's recurrence: a loop embedding before the blocks, an identity-biased gate after them.

Thinking Deeper, Not Longer (arXiv 2603.21676), section 3.1:
h_in = h + e[loop];  new = blocks(h_in);  z = σ(W [new; h] + b);  h ← z·new + (1 − z)·h
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.recurrence.base import Continue, Passage

Beyond = Literal["own", "last", "zero"]


class LoopEmbed(nn.Module):
    """A learned vector per loop, with initial standard deviation 1.

    Only the first `trained` loops were trained. `beyond` sets what later loops add: their own row
    of the table, at its initial value (the paper's rule); the last trained row; or nothing.
    """

    def __init__(self, d_model: int, max_loops: int, trained: int | None, beyond: Beyond) -> None:
        super().__init__()
        self.W_loop = nn.Parameter(torch.randn(max_loops, d_model))
        self.trained = trained
        self.beyond = beyond

    def forward(self, loop: int) -> Float[Tensor, " d_model"]:
        if self.trained is None or loop < self.trained or self.beyond == "own":
            return self.W_loop[loop]
        last = self.W_loop[self.trained - 1]
        return last if self.beyond == "last" else torch.zeros_like(last)


class UpdateGate(nn.Module):
    """A gate σ(W [new; old] + b) per channel; b starts low, so that most of the old state is kept.

    W starts with standard deviation 1/√(3·2·d_model), as in torch's `nn.Linear`.

    hook_pre   logits of the new state's share  [batch pos d_model]
    hook_post  the share, in (0, 1)             [batch pos d_model]
    """

    def __init__(self, d_model: int, bias: float) -> None:
        super().__init__()
        self.W_gate = nn.Parameter(torch.randn(2 * d_model, d_model) * (6 * d_model) ** -0.5)
        self.b_gate = nn.Parameter(torch.full((d_model,), bias))
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def forward(
        self, new: Float[Tensor, "batch pos d_model"], old: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        logits = torch.cat((new, old), dim=-1) @ self.W_gate + self.b_gate
        return self.hook_post(self.hook_pre(logits).sigmoid())


class LoopEmbedded(Continue):
    """A recurrence that adds a learned vector per loop to the blocks' input.

    hook_loop_embed  the vector that the loop adds  [batch pos d_model], once per loop
    """

    has_loop_embedding: ClassVar[bool] = True

    def __init__(self, loop_embed: LoopEmbed) -> None:
        super().__init__()
        self.loop_embed = loop_embed
        self.max_loops = len(loop_embed.W_loop)
        self.hook_loop_embed = HookPoint()

    def begin(
        self, state: Float[Tensor, "batch pos d_model"], loop: int, passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        added = self.hook_loop_embed(self.loop_embed(loop).expand_as(state))
        passage.memory["loop_embed"] = added
        return state + added

    def loop_embedding(self, loop: int) -> Float[Tensor, " d_model"]:
        return self.loop_embed(loop)

    def flops(self, n_loops: int | float, n_embed: int) -> float:
        # Rows of the table are looked up and added, without a matrix product
        return super().flops(n_loops, n_embed) - 2.0 * n_loops * self.loop_embed.W_loop.numel()


class GatedUpdate(LoopEmbedded):
    """A recurrence whose gate replaces a share of each channel at the end of each of the K loops.

    The old state is the blocks' input without the loop embedding, so that an edit of
    `hook_state_pre` changes both the blocks' input and the old state.

    gate.hook_pre, gate.hook_post  the new state's share, before and after the σ
    """

    has_gate: ClassVar[bool] = True

    def __init__(self, loop_embed: LoopEmbed, gate: UpdateGate) -> None:
        super().__init__(loop_embed)
        self.gate = gate

    def finish(
        self,
        start: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        loop: int,
        passage: Passage,
    ) -> Float[Tensor, "batch pos d_model"]:
        old = start - passage.memory["loop_embed"]
        share = self.gate(update, old)
        return old + share * (update - old)
