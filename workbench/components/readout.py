"""Readouts for tasks with yes/no answers; other tasks read a word from the vocabulary.

The head is LayerNorm → Linear → GELU → Dropout → Linear to one number z (VCoT, arXiv 2603.21676).
The logits of no and yes are 0 and z, so that cross-entropy is the paper's binary cross-entropy.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.settings.config import ModelConfig


class YesNo(nn.Module, ABC):
    """A head that computes the logits of no and yes from some positions of a state.

    hook_in    the states that are read, concatenated  [batch n·d_model]
    hook_pre   before the GELU                         [batch d_model]
    hook_post  after the GELU                          [batch d_model]
    """

    takes: ClassVar[tuple[str, ...]] = ()
    n_places: ClassVar[int]

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        wide = self.n_places * cfg.d_model
        self.eps = cfg.eps
        self.w = nn.Parameter(torch.ones(wide))
        self.b = nn.Parameter(torch.zeros(wide))
        self.W_in = nn.Parameter(torch.randn(wide, cfg.d_model) * (3 * wide) ** -0.5)
        self.b_in = nn.Parameter(torch.zeros(cfg.d_model))
        self.W_out = nn.Parameter(torch.randn(cfg.d_model, 1) * (3 * cfg.d_model) ** -0.5)
        self.b_out = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(cfg.dropout)
        self.hook_in = HookPoint()
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def forward(
        self, state: Float[Tensor, "batch pos d_model"], inputs: Mapping[str, Tensor]
    ) -> Float[Tensor, "batch 2"]:
        read = self.hook_in(self.gather(state, inputs))
        normed = F.layer_norm(read, self.w.shape, self.w, self.b, self.eps)
        pre = self.hook_pre(normed @ self.W_in + self.b_in)
        yes = self.dropout(self.hook_post(F.gelu(pre))) @ self.W_out + self.b_out
        return torch.cat((torch.zeros_like(yes), yes), dim=1)

    @abstractmethod
    def gather(
        self, state: Float[Tensor, "batch pos d_model"], inputs: Mapping[str, Tensor]
    ) -> Float[Tensor, "batch wide"]:
        """Return the part of the state that the head reads."""


class Cls(YesNo):
    """A readout of the first position, where CLS is, or of the positions in `logits_at`."""

    n_places = 1

    def gather(
        self, state: Float[Tensor, "batch pos d_model"], inputs: Mapping[str, Tensor]
    ) -> Float[Tensor, "batch wide"]:
        at = inputs.get("logits_at")
        return state[:, 0] if at is None else state[torch.arange(len(state)), at]


class Pair(YesNo):
    """A readout of the two positions in question: nodes of a graph or entities of a text."""

    takes: ClassVar[tuple[str, ...]] = ("source_at", "target_at")
    n_places = 2

    def gather(
        self, state: Float[Tensor, "batch pos d_model"], inputs: Mapping[str, Tensor]
    ) -> Float[Tensor, "batch wide"]:
        rows = torch.arange(len(state), device=state.device)
        return torch.cat(
            (state[rows, inputs["source_at"]], state[rows, inputs["target_at"]]), dim=1
        )


READOUTS: dict[str, type[YesNo] | None] = {
    "vocabulary": None,  # the model's own ln_final and unembed
    "cls": Cls,
    "node_pair": Pair,
    "entities": Pair,
}
