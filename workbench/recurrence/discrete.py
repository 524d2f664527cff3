"""Recurrences with a discrete channel: a loop's output is decoded, embedded and passed on."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from workbench.components.norm import rms_normalize
from workbench.hooks import HookPoint
from workbench.recurrence.base import Passage, Recurrence
from workbench.recurrence.gate import FixedGate, LearnedGate
from workbench.recurrence.phi import Phi


class MixDecoded(Recurrence):
    """DiscoLoop's recurrence: next state = H + α·RMSNorm(Φ(H)), where RMSNorm has no gain.

    RMSNorm gives Φ the norm √d_model for embeddings of any size. Embeddings of standard deviation 1
    have that norm themselves, so that α = 1 adds the decoded token at full size.

    hook_decoded              Φ(H)                       [batch pos d_model], between loops
    gate.hook_pre, hook_post  α before and after the σ   [batch pos 1], between loops
    """

    between: ClassVar[tuple[str, ...]] = (
        "recurrence.hook_decoded",
        "recurrence.gate.hook_pre",
        "recurrence.gate.hook_post",
    )

    def __init__(self, phi: Phi, gate: FixedGate | LearnedGate) -> None:
        super().__init__()
        self.phi = phi
        self.gate = gate
        self.hook_decoded = HookPoint()

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        decoded = self.hook_decoded(self.phi(post, passage.vocabulary))
        return post + self.gate(decoded) * rms_normalize(decoded)

    def flops(self, n_loops: int | float, n_embed: int) -> float:
        return self.phi.flops(n_embed) * (n_loops - 1)


class Reembed(Recurrence):
    """PonderLM's recurrence: the next loop starts from the input plus Φ(H), or from Φ(H) alone.

    The continuous state is discarded; position embeddings are added again in both cases.

    hook_decoded  Φ(H)  [batch pos d_model], between loops
    """

    between: ClassVar[tuple[str, ...]] = ("recurrence.hook_decoded",)

    def __init__(self, phi: Phi, keep_input: bool) -> None:
        super().__init__()
        self.phi = phi
        self.keep_input = keep_input
        self.hook_decoded = HookPoint()

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        decoded = self.hook_decoded(self.phi(post, passage.vocabulary))
        embedding = passage.embedding
        return embedding.place(embedding.tokens + decoded if self.keep_input else decoded)

    def flops(self, n_loops: int | float, n_embed: int) -> float:
        return self.phi.flops(n_embed) * (n_loops - 1)
