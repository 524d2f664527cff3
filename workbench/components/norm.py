"""LayerNorm and RMSNorm, hooked where TransformerLens 3.9's HookedTransformer hooks them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint, is_heard
from workbench.settings.config import ModelConfig


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + eps)·w + b; `hook_normalized` fires before gain and bias."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.eps = cfg.eps
        self.w = nn.Parameter(torch.ones(cfg.d_model))
        self.b = nn.Parameter(torch.zeros(cfg.d_model))
        self.hook_scale = HookPoint()  # [batch pos 1]
        self.hook_normalized = HookPoint()  # [batch pos d_model]

    def forward(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        if not is_heard(self.hook_scale, self.hook_normalized):
            return self.plain(x)
        x = x - x.mean(-1, keepdim=True)
        scale = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt())
        return self.hook_normalized(x / scale) * self.w + self.b

    def plain(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        """Apply the same norm with a fused kernel and without firing hooks."""
        return F.layer_norm(x, self.w.shape, self.w, self.b, self.eps)


class RMSNorm(nn.Module):
    """x / √(mean x² + eps)·w; `hook_normalized` fires before the gain w.

    Vectors have length `length`, by default d_model. With `cfg.use_qk_norm` the queries and keys of
    each head are normed too, with length d_head.
    """

    def __init__(self, cfg: ModelConfig, length: int | None = None) -> None:
        super().__init__()
        self.eps = cfg.eps
        self.w = nn.Parameter(torch.ones(cfg.d_model if length is None else length))
        self.hook_scale = HookPoint()  # [batch pos 1]; for heads [batch pos head 1]
        self.hook_normalized = HookPoint()  # [batch pos d_model]; heads [batch pos head d_head]

    def forward(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        if not is_heard(self.hook_scale, self.hook_normalized):
            return self.plain(x)
        scale = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt())
        return self.hook_normalized(x / scale) * self.w

    def plain(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        """Apply the same norm with a fused kernel and without firing hooks."""
        return F.rms_norm(x, self.w.shape, self.w, self.eps)


def norm(cfg: ModelConfig) -> LayerNorm | RMSNorm:
    """Return the norm that `cfg.normalization_type` specifies."""
    return LayerNorm(cfg) if cfg.normalization_type == "LN" else RMSNorm(cfg)


def rms_normalize(
    x: Float[Tensor, "*axes d_model"], eps: float = 1e-5
) -> Float[Tensor, "*axes d_model"]:
    """Apply RMSNorm without a gain: every vector gets the norm √d_model."""
    return F.rms_norm(x, x.shape[-1:], eps=eps)
