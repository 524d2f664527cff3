"""Adaptive computation time (Graves 2016; Universal Transformer, Dehghani et al. 2019)."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.recurrence.base import Passage
from workbench.recurrence.update import LoopEmbed, LoopEmbedded

PONDER = "recurrence.halt.hook_ponder"


class Halt(nn.Module):
    """The halting probability σ(⟨w, h⟩ + b) of a position after a loop; w starts at zero.

    hook_pre     logits of halting                                          [batch pos 1]
    hook_post    probability of halting                                     [batch pos 1]
    hook_weight  weight of this loop's state in the loop's output           [batch pos 1]
    hook_ponder  ponder cost N + R: loops run, plus the remainder           [batch pos 1]
    """

    def __init__(self, d_model: int, bias: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d_model))
        self.b = nn.Parameter(torch.full((), bias))
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()
        self.hook_weight = HookPoint()
        self.hook_ponder = HookPoint()

    def forward(self, state: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos 1"]:
        logits = self.hook_pre((state @ self.w + self.b)[..., None])
        return self.hook_post(logits.sigmoid())


class AdaptiveHalting(LoopEmbedded):
    """Each position halts on its own; a loop's output is the weighted mean of the states so far.

    A position runs until its probabilities add up to 1 − ε. Each loop's state is weighted with its
    halting probability, and the last one with the remainder R: 1 minus the sum of the others. The
    output of loop r is the mean as if r were the last loop, so that a longer run has the same
    records. A position that has halted keeps its state and its mean.

    hook_state  the states before averaging  [batch pos d_model], once per loop
    """

    state_is_all: ClassVar[bool] = False
    halts: ClassVar[bool] = True

    def __init__(self, loop_embed: LoopEmbed, halt: Halt, eps: float) -> None:
        super().__init__(loop_embed)
        self.halt = halt
        self.eps = eps
        self.hook_state = HookPoint()

    def finish(
        self,
        start: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        loop: int,
        passage: Passage,
    ) -> Float[Tensor, "batch pos d_model"]:
        memory = passage.memory
        zero = torch.zeros_like(update[..., :1])
        if loop == 0:
            memory |= {"spent": zero, "loops": zero, "mean": torch.zeros_like(update)}
            memory |= {"going": torch.ones_like(zero, dtype=torch.bool), "remainder": zero}
        going = memory["going"]
        old = start - memory["loop_embed"]
        state = self.hook_state(torch.where(going, update, old))
        probability = self.halt(state)
        left = 1 - memory["spent"]
        remainder = torch.where(going, left, memory["remainder"])
        # As if this loop were the last: it gets all the remaining weight
        said = memory["mean"] + self.halt.hook_weight(torch.where(going, left, zero)) * state
        stops = memory["spent"] + probability > 1 - self.eps
        weight = torch.where(going, torch.where(stops, left, probability), zero)
        memory["loops"] = memory["loops"] + going
        self.halt.hook_ponder(memory["loops"] + remainder)
        memory |= {
            "state": state,
            "spent": memory["spent"] + weight,
            "mean": memory["mean"] + weight * state,
            "remainder": remainder,
            "going": going & ~stops,
        }
        return said

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        return passage.memory["state"]
