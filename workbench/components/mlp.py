"""The MLP of a block, plain or gated."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint
from workbench.settings.config import Activation, ModelConfig

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


class MLP(nn.Module):
    """A plain MLP: act(x W_in + b_in) W_out + b_out.

    W_in starts with standard deviation 1/√d_model, W_out with `output_init`/√d_mlp.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.act = ACTIVATIONS[cfg.act_fn]
        self.W_in = nn.Parameter(torch.randn(cfg.d_model, cfg.d_mlp) * cfg.d_model**-0.5)
        self.b_in = nn.Parameter(torch.zeros(cfg.d_mlp))
        self.W_out = nn.Parameter(
            torch.randn(cfg.d_mlp, cfg.d_model) * cfg.d_mlp**-0.5 * cfg.output_init
        )
        self.b_out = nn.Parameter(torch.zeros(cfg.d_model))
        self.dropout = nn.Dropout(cfg.dropout)
        self.hook_pre = HookPoint()  # [batch pos d_mlp]
        self.hook_post = HookPoint()  # [batch pos d_mlp]

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        pre = self.hook_pre(F.linear(x, self.W_in.T, self.b_in))
        post = self.dropout(self.hook_post(self.act(pre)))
        return F.linear(post, self.W_out.T, self.b_out)


class GatedMLP(nn.Module):
    """A gated MLP (Shazeer 2020): (act(x W_gate)·(x W_in) + b_in) W_out + b_out.

    The formula is TransformerLens's. Weights start with the same standard deviations as in `MLP`.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.act = ACTIVATIONS[cfg.act_fn]
        self.W_gate = nn.Parameter(torch.randn(cfg.d_model, cfg.d_mlp) * cfg.d_model**-0.5)
        self.W_in = nn.Parameter(torch.randn(cfg.d_model, cfg.d_mlp) * cfg.d_model**-0.5)
        self.b_in = nn.Parameter(torch.zeros(cfg.d_mlp))
        self.W_out = nn.Parameter(
            torch.randn(cfg.d_mlp, cfg.d_model) * cfg.d_mlp**-0.5 * cfg.output_init
        )
        self.b_out = nn.Parameter(torch.zeros(cfg.d_model))
        self.dropout = nn.Dropout(cfg.dropout)
        self.hook_pre = HookPoint()  # [batch pos d_mlp], input of the gate
        self.hook_pre_linear = HookPoint()  # [batch pos d_mlp]
        self.hook_post = HookPoint()  # [batch pos d_mlp]

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        gate = self.act(self.hook_pre(F.linear(x, self.W_gate.T)))
        linear = self.hook_pre_linear(F.linear(x, self.W_in.T))
        post = self.dropout(self.hook_post(torch.addcmul(self.b_in, gate, linear)))
        return F.linear(post, self.W_out.T, self.b_out)


def mlp(cfg: ModelConfig) -> MLP | GatedMLP:
    """Return the MLP that `cfg.gated_mlp` specifies."""
    return GatedMLP(cfg) if cfg.gated_mlp else MLP(cfg)
