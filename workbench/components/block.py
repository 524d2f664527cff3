"""A pre-norm transformer block (norm → attention or MLP → add), with TransformerLens's hooks."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.attention import Context
from workbench.components.grouped import make_attention
from workbench.components.mlp import mlp
from workbench.components.norm import norm
from workbench.hooks import HookPoint
from workbench.settings.config import ModelConfig


class Block(nn.Module):
    """A block: resid + attn(ln1(resid)), then + mlp(ln2(·)). All hooks are [batch pos d_model].

    With `layer_scale`, the outputs of attention and MLP are scaled channel by channel;
    `hook_attn_out` and `hook_mlp_out` see the scaled outputs.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.ln1 = norm(cfg)
        self.attn = make_attention(cfg)
        self.ln2 = norm(cfg)
        self.mlp = mlp(cfg)
        self.ls1, self.ls2 = layer_scale(cfg), layer_scale(cfg)
        self.dropout = nn.Dropout(cfg.dropout)
        self.hook_resid_pre = HookPoint()
        self.hook_attn_out = HookPoint()
        self.hook_resid_mid = HookPoint()
        self.hook_mlp_out = HookPoint()
        self.hook_resid_post = HookPoint()

    def forward(
        self, resid: Float[Tensor, "batch pos d_model"], context: Context
    ) -> Float[Tensor, "batch pos d_model"]:
        resid = self.hook_resid_pre(resid)
        added = self.ls1(self.dropout(self.attn(self.ln1(resid), context)))
        resid = self.hook_resid_mid(resid + self.hook_attn_out(added))
        added = self.ls2(self.dropout(self.mlp(self.ln2(resid))))
        return self.hook_resid_post(resid + self.hook_mlp_out(added))


class LayerScale(nn.Module):
    """A learned scale per channel of an attention or MLP output (Touvron et al. 2021)."""

    def __init__(self, d_model: int, start: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((d_model,), start))

    def forward(self, x: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_model"]:
        return x * self.gamma


def layer_scale(cfg: ModelConfig) -> nn.Module:
    """Return the layer scale that `cfg.layer_scale` specifies; the identity for None."""
    if cfg.layer_scale is None:
        return nn.Identity()
    return LayerScale(cfg.d_model, cfg.layer_scale)
