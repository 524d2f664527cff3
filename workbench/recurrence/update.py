"""VCoT's recurrence: a loop embedding on the way in, an identity-biased gate on the way out.

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
    """A learned vector for each loop, standard deviation 1 at the start.

    Loops beyond the first `trained` were never trained. What they add is `beyond`: their own row
    of the table, as it was drawn (the paper's rule); the last trained row; or nothing.
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
    """σ(W [new; old] + b), a share for each channel; b starts low, so that most is kept.

    W starts with standard deviation 1/√(3·2·d_model), as torch's own linear maps do.

    hook_pre   logits of the share of the new  [batch pos d_model]
    hook_post  the share, in (0, 1)            [batch pos d_model]
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
    """Adds a learned vector for each loop to what the blocks start from.

    hook_loop_embed  the vector that the loop adds  [batch pos d_model], once a loop
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
        # Rows of the table are looked up and added; they enter no product
        return super().flops(n_loops, n_embed) - 2.0 * n_loops * self.loop_embed.W_loop.numel()


class GatedUpdate(LoopEmbedded):
    """A loop replaces a share of each channel; the gate is its last act, so it fires K times.

    The state that the gate keeps is what the blocks started from, without the loop embedding, so
    that an edit of `hook_state_pre` changes both.

    gate.hook_pre, gate.hook_post  the share of the new, before and after the σ
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
