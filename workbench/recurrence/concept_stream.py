"""AGCLR's recurrence (arXiv 2606.07720, equations 1-4): a memory beside the thoughts, three gates.

ĥ = LN(h);  r, f, w = σ(W ĥ + b);  h' = (1 − f)·h + r·c;  c ← LN(c + w·h'), c = 0 at first
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.recurrence.feedback import ThoughtRecurrence

# Biases of read, forget and write at the start, as published for each data set
BIASES: Mapping[str, tuple[float, float, float]] = {
    "gsm8k": (-0.28, -1.0, -1.5),  # σ: .43, .27, .18
    "hotpotqa": (-0.28, -1.0, -1.5),
    "prosqa": (-0.28, -1.5, -0.28),  # σ: .43, .18, .43
}
Gate = Literal["read", "forget", "write"]
SHUT = -10.0  # a bias that all but shuts a gate: the paper's knock-out, σ(−10) = 4.5e−5


class StreamGate(nn.Module):
    """σ(ĥ W + b), a share for each channel. W starts at zero, so that the share is σ(b).

    hook_pre   logits of the share  [batch d_model]
    hook_post  the share, in (0, 1) [batch d_model]
    """

    def __init__(self, d_model: int, bias: float) -> None:
        super().__init__()
        self.W_gate = nn.Parameter(torch.zeros(d_model, d_model))
        self.b_gate = nn.Parameter(torch.full((d_model,), bias))
        self.hook_pre = HookPoint()
        self.hook_post = HookPoint()

    def fix(self) -> None:
        """Keep weight and bias as they are, whatever is trained."""
        self.requires_grad_(False)

    def forward(self, normed: Float[Tensor, "batch d_model"]) -> Float[Tensor, "batch d_model"]:
        return self.hook_post(self.hook_pre(normed @ self.W_gate + self.b_gate).sigmoid())


class StreamNorm(nn.Module):
    """LayerNorm with gain and bias, without places of its own."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Float[Tensor, "batch d_model"]) -> Float[Tensor, "batch d_model"]:
        return F.layer_norm(x, self.w.shape, self.w, self.b, self.eps)


class ConceptStream(ThoughtRecurrence):
    """A gated memory of d_model channels, one for each sequence, changed at every thought.

    Forget 1 erases the state, h' = r·c; read 0 and forget 0 leave it as CoCoNuT does, bit for bit;
    write 0 keeps new things out of the stream, whose norm still acts. With `memory="reset"` every
    thought begins with an empty stream: the same parameters, nothing remembered. Gates named in
    `shut` are removed as published: weight 0 and bias −10, neither of which is trained.

    read.*, forget.*, write.*  the gates' shares, before and after the σ  [batch d_model]
    hook_stream                c after the thought                        [batch d_model]
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
