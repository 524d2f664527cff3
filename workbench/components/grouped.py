"""Grouped-query attention (Ainslie et al. 2023): query heads share keys and values in groups."""

from typing import Any

from torch import Tensor, nn

from workbench.components.attention import Attention
from workbench.settings.config import ModelConfig


def _for_each_head(name: str) -> Any:
    """Return a property that repeats a stored weight for each query head of its group."""
    return property(lambda self: getattr(self, name).repeat_interleave(self.group, dim=0))


class GroupedAttention(Attention):
    """Attention with `n_key_value_heads` key-value heads, each shared by several query heads.

    As in TransformerLens, `_W_K`, `_W_V`, `_b_K` and `_b_V` hold one entry per key-value head, and
    `W_K`, `W_V`, `b_K` and `b_V` repeat them for each query head. `hook_k` and `hook_v` have
    `n_key_value_heads` heads.
    """

    W_K = _for_each_head("_W_K")
    W_V = _for_each_head("_W_V")
    b_K = _for_each_head("_b_K")
    b_V = _for_each_head("_b_V")

    def keep_maps(self, W_K: nn.Parameter, W_V: nn.Parameter) -> None:
        self._W_K, self._W_V = W_K, W_V

    def keep_biases(self, b_K: nn.Parameter, b_V: nn.Parameter) -> None:
        self._b_K, self._b_V = b_K, b_V

    def kept(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self._W_K, self._W_V, self._b_K, self._b_V


def make_attention(cfg: ModelConfig) -> Attention:
    """Return the attention that `cfg.n_key_value_heads` specifies."""
    return Attention(cfg) if cfg.n_key_value_heads is None else GroupedAttention(cfg)
