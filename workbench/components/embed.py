"""Embeddings and unembeddings."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.settings.config import ModelConfig


class Embed(nn.Module):
    """Token embeddings W_E, whose entries start with standard deviation `embed_std`."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.W_E = nn.Parameter(torch.randn(cfg.d_vocab, cfg.d_model) * cfg.embed_std)

    def forward(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        return F.embedding(tokens, self.W_E)


class PosEmbed(nn.Module):
    """Learned position embeddings, which start at a tenth of the token embeddings' size."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.W_pos = nn.Parameter(torch.randn(cfg.n_ctx, cfg.d_model) * 0.1 * cfg.embed_std)

    def forward(
        self, positions: Int[Tensor, "rows pos"], n_batch: int
    ) -> Float[Tensor, "batch pos d_model"]:
        return F.embedding(positions, self.W_pos).expand(n_batch, -1, -1)


class Unembed(nn.Module):
    """An untied unembedding, with its own weights W_U and bias b_U."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.W_U = nn.Parameter(torch.randn(cfg.d_model, cfg.d_vocab) * cfg.d_model**-0.5)
        self.b_U = nn.Parameter(torch.zeros(cfg.d_vocab))
        self.hook_in = HookPoint()  # [batch pos d_model]
        self.hook_out = HookPoint()  # [batch pos d_vocab]

    def forward(self, resid: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        return self.hook_out(self.plain(self.hook_in(resid)))

    def plain(self, resid: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Return the same logits without firing hooks."""
        return F.linear(resid, self.W_U.T, self.b_U)


class TiedUnembed(nn.Module):
    """A tied unembedding, resid · W_E^T · scale, without parameters."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.hook_in = HookPoint()  # [batch pos d_model]
        self.hook_out = HookPoint()  # [batch pos d_vocab]

    def forward(
        self, resid: Float[Tensor, "*axes d_model"], W_E: Float[Tensor, "d_vocab d_model"]
    ) -> Float[Tensor, "*axes d_vocab"]:
        return self.hook_out(self.plain(self.hook_in(resid), W_E))

    def plain(
        self, resid: Float[Tensor, "*axes d_model"], W_E: Float[Tensor, "d_vocab d_model"]
    ) -> Float[Tensor, "*axes d_vocab"]:
        """Return the same logits without firing hooks."""
        return (resid * self.scale) @ W_E.T
