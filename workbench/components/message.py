"""One round of message passing (Gilmer et al. 2017), with the interface of a transformer block."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.attention import Context, causal
from workbench.components.mlp import ACTIVATIONS
from workbench.components.norm import norm
from workbench.hooks import HookPoint
from workbench.settings.config import ModelConfig


class MessageBlock(nn.Module):
    """A block: resid + MLP([x; Σ messages]), x = ln1(resid), summed over all visible positions.

    A message is act(x_sender W_send + x_receiver W_receive + b). Weights start with standard
    deviation 1/√fan_in, W_out with `output_init`/√fan_in.

    hook_resid_pre, hook_resid_post  as in a transformer block    [batch pos d_model]
    hook_message                     the sum of the messages      [batch pos d_mlp]
    hook_mlp_out                     the block's update           [batch pos d_model]
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        d, wide = cfg.d_model, cfg.d_mlp
        self.act = ACTIVATIONS[cfg.act_fn]
        self.ln1 = norm(cfg)
        self.W_send = nn.Parameter(torch.randn(d, wide) * (2 * d) ** -0.5)
        self.W_receive = nn.Parameter(torch.randn(d, wide) * (2 * d) ** -0.5)
        self.b_message = nn.Parameter(torch.zeros(wide))
        self.W_in = nn.Parameter(torch.randn(d + wide, wide) * (d + wide) ** -0.5)
        self.b_in = nn.Parameter(torch.zeros(wide))
        self.W_out = nn.Parameter(torch.randn(wide, d) * wide**-0.5 * cfg.output_init)
        self.b_out = nn.Parameter(torch.zeros(d))
        self.dropout = nn.Dropout(cfg.dropout)
        self.hook_resid_pre = HookPoint()
        self.hook_message = HookPoint()
        self.hook_mlp_out = HookPoint()
        self.hook_resid_post = HookPoint()

    def forward(
        self, resid: Float[Tensor, "batch pos d_model"], context: Context
    ) -> Float[Tensor, "batch pos d_model"]:
        resid = self.hook_resid_pre(resid)
        x = self.ln1(resid)
        allowed = context.allowed
        if allowed is None:
            allowed = causal(x.shape[1], x.device)[None, None]
        pairs = (x @ self.W_receive)[:, :, None] + (x @ self.W_send + self.b_message)[:, None]
        sent = self.act(pairs)  # [batch receiver sender d_mlp]
        arrived = torch.einsum("bors,brsw->brw", allowed.to(x.dtype), sent)
        message = self.hook_message(arrived)
        inner = self.act(torch.cat((x, message), dim=-1) @ self.W_in + self.b_in)
        added = self.hook_mlp_out(self.dropout(inner @ self.W_out + self.b_out))
        return self.hook_resid_post(resid + added)
