"""A pre-norm transformer block (norm → part → add), hooked under TransformerLens's names."""

from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.attention import Attention, Context
from workbench.components.mlp import MLP
from workbench.components.norm import norm
from workbench.config import ModelConfig
from workbench.hooks import HookPoint


class Block(nn.Module):
    """resid + attn(ln1(resid)), then + mlp(ln2(·)). All places are [batch pos d_model]."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.ln1 = norm(cfg)
        self.attn = Attention(cfg)
        self.ln2 = norm(cfg)
        self.mlp = MLP(cfg)
        self.hook_resid_pre = HookPoint()
        self.hook_attn_out = HookPoint()
        self.hook_resid_mid = HookPoint()
        self.hook_mlp_out = HookPoint()
        self.hook_resid_post = HookPoint()

    def forward(
        self, resid: Float[Tensor, "batch pos d_model"], context: Context
    ) -> Float[Tensor, "batch pos d_model"]:
        resid = self.hook_resid_pre(resid)
        resid = self.hook_resid_mid(resid + self.hook_attn_out(self.attn(self.ln1(resid), context)))
        return self.hook_resid_post(resid + self.hook_mlp_out(self.mlp(self.ln2(resid))))
