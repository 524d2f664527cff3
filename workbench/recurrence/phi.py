"""Φ: decode a state to a distribution over tokens, and embed that distribution.

Φ(h) = Σ_v softmax(W h / τ)_v W[v], DiscoLoop (arXiv 2607.00341), section on the soft channel. Here
the logits W h are computed after the final norm, as in the readout; the paper does not specify it.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.recurrence.base import Decoder

Decoding = Literal["soft", "hard", "straight_through"]


class Phi(nn.Module):
    """Soft, hard or straight-through decoding, over all tokens or the `top_k` most likely.

    soft              the mean embedding under the distribution
    hard              the embedding of the most likely token; no gradient reaches the state
    straight_through  hard in the forward pass, soft in the backward pass
    """

    def __init__(self, decoding: Decoding, tau: float, top_k: int | None) -> None:
        super().__init__()
        self.decoding = decoding
        self.tau = tau
        self.top_k = top_k

    def forward(
        self, state: Float[Tensor, "batch pos d_model"], vocabulary: Decoder
    ) -> Float[Tensor, "batch pos d_model"]:
        logits = vocabulary.decode(state)
        if self.decoding == "hard":
            return F.embedding(logits.argmax(-1), vocabulary.W_E)
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            logits, tokens = logits.topk(self.top_k, dim=-1)
            embeddings = F.embedding(tokens, vocabulary.W_E)  # [batch pos top_k d_model]
            return (self._weights(logits)[..., None, :] @ embeddings)[..., 0, :]
        return self._weights(logits) @ vocabulary.W_E

    def flops(self, n_embed: int) -> float:
        """Count the operations of decoding one token.

        One product with W_U, and a second one with W_E if the mean is over all tokens.
        """
        looks_up = self.decoding == "hard" or self.top_k is not None
        return 2.0 * n_embed * (1 if looks_up else 2)

    def _weights(self, logits: Float[Tensor, "*axes token"]) -> Float[Tensor, "*axes token"]:
        # With τ = 1, skip one operation on [batch pos d_vocab], forward and backward
        soft = (logits if self.tau == 1 else logits / self.tau).softmax(-1)
        if self.decoding == "soft":
            return soft
        hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
        return hard + soft - soft.detach()
