"""AGCLR's recurrence (arXiv 2606.07720, equations 1-4): a memory beside the thoughts, with 3 gates.

ĥ = LN(h);  r, f, w = σ(W ĥ + b);  h' = (1 − f)·h + r·c;  c ← LN(c + w·h'), initially c = 0
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.recurrence.feedback import ThoughtRecurrence

# Initial biases of the read, forget and write gates, as published for each data set
BIASES: Mapping[str, tuple[float, float, float]] = {
    "gsm8k": (-0.28, -1.0, -1.5),  # σ: .43, .27, .18
    "hotpotqa": (-0.28, -1.0, -1.5),
    "prosqa": (-0.28, -1.5, -0.28),  # σ: .43, .18, .43
}
Gate = Literal["read", "forget", "write"]
SHUT = -10.0  # a bias that almost closes a gate: the paper's knock-out, σ(−10) = 4.5e−5


class StreamGate(nn.Module):
    """A gate σ(ĥ W + b) per channel. W starts at zero, so that the gate starts at σ(b).

    hook_pre   logits of the gate        [batch d_model]
    hook_post  the gate value, in (0, 1) [batch d_model]
    """

    def __init__(self, d_model: int, bias: float) -> None:
        super().__init__()
        self.W_gate = nn.Parameter(torch.zeros(d_model, d_model))
        self.b_gate = nn.Parameter(torch.full((d_model,), bias))
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def fix(self) -> None:
        """Exclude weight and bias from training."""
        self.requires_grad_(False)

    def forward(self, normed: Float[Tensor, "batch d_model"]) -> Float[Tensor, "batch d_model"]:
        return self.hook_post(self.hook_pre(normed @ self.W_gate + self.b_gate).sigmoid())


class StreamNorm(nn.Module):
    """LayerNorm with gain and bias, but without hooks."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Float[Tensor, "batch d_model"]) -> Float[Tensor, "batch d_model"]:
        return F.layer_norm(x, self.w.shape, self.w, self.b, self.eps)


class ConceptStream(ThoughtRecurrence):
    """A gated memory (stream) of d_model channels per sequence, updated at every thought.

    A forget gate of 1 erases the state: h' = r·c. With read and forget gates of 0 the state is
    bitwise equal to CoCoNuT's. With a write gate of 0 nothing new enters the stream, but its norm
    is still applied. With `memory="reset"` every thought starts with an empty stream: the
    parameters are the same, but nothing is remembered. Gates named in `shut` are removed as
    published: weight 0 and bias −10, both untrained.

    read.*, forget.*, write.*  the gates, before and after the σ  [batch d_model]
    hook_stream                c after the thought                [batch d_model]
    """

    def __init__(
        self,
        d_model: int,
        biases: Sequence[float] = BIASES["prosqa"],
        memory: Literal["kept", "reset"] = "kept",
        shut: Collection[Gate] = (),
    ) -> None:
        super().__init__()
        names: tuple[Gate, Gate, Gate] = ("read", "forget", "write")
        start = (SHUT if name in shut else bias for name, bias in zip(names, biases, strict=True))
        read, forget, write = start
        self.ln_state = StreamNorm(d_model)
        self.ln_stream = StreamNorm(d_model)
        self.read = StreamGate(d_model, read)
        self.forget = StreamGate(d_model, forget)
        self.write = StreamGate(d_model, write)
        for name in shut:
            {"read": self.read, "forget": self.forget, "write": self.write}[name].fix()
        self.memory = memory
        self.hook_stream = HookPoint()

    def forward(
        self, state: Float[Tensor, "batch d_model"], stream: Float[Tensor, "batch d_model"]
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        if self.memory == "reset":
            stream = torch.zeros_like(stream)
        state = self.hook_state_pre(state)
        normed = self.ln_state(state)
        mixed = (1 - self.forget(normed)) * state + self.read(normed) * stream
        thought = self.hook_thought(mixed)
        kept = self.hook_stream(self.ln_stream(stream + self.write(normed) * thought))
        return thought, kept
