"""LayerNorm and RMSNorm, hooked where TransformerLens 3.9's HookedTransformer hooks them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint, is_heard
from workbench.settings.config import ModelConfig


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + eps)·w + b; `hook_normalized` sees it before gain and bias."""

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
        """The same norm, fused and without hooks."""
        return F.layer_norm(x, self.w.shape, self.w, self.b, self.eps)


class RMSNorm(nn.Module):
    """x / √(mean x² + eps)·w; `hook_normalized` sees it before the gain w.

    Of vectors `length` wide, by default of states: heads are normed where `cfg.use_qk_norm` says.
    """

    def __init__(self, cfg: ModelConfig, length: int | None = None) -> None:
        super().__init__()
        self.eps = cfg.eps
        self.w = nn.Parameter(torch.ones(cfg.d_model if length is None else length))
        self.hook_scale = HookPoint()  # [batch pos 1], of heads [batch pos head 1]
        self.hook_normalized = HookPoint()  # [batch pos d_model], of heads [batch pos head d_head]

    def forward(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        if not is_heard(self.hook_scale, self.hook_normalized):
            return self.plain(x)
        scale = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt())
        return self.hook_normalized(x / scale) * self.w

    def plain(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        """The same norm, fused and without hooks."""
        return F.rms_norm(x, self.w.shape, self.w, self.eps)


def norm(cfg: ModelConfig) -> LayerNorm | RMSNorm:
    """The norm that `cfg.normalization_type` names."""
    return LayerNorm(cfg) if cfg.normalization_type == "LN" else RMSNorm(cfg)


def rms_normalize(
    x: Float[Tensor, "*axes d_model"], eps: float = 1e-5
) -> Float[Tensor, "*axes d_model"]:
    """RMSNorm without a gain: every vector gets the norm √d_model."""
    return F.rms_norm(x, x.shape[-1:], eps=eps)
