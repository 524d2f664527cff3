"""Attention whose heads share keys and values in groups (Ainslie et al. 2023)."""

from typing import Any

from torch import Tensor, nn

from workbench.components.attention import Attention
from workbench.settings.config import ModelConfig


def _for_each_head(name: str) -> Any:
    """A held weight, given to every head of queries that it serves."""
    return property(lambda self: getattr(self, name).repeat_interleave(self.group, dim=0))


class GroupedAttention(Attention):
    """`n_key_value_heads` heads of keys and values, each for several heads of queries.

    As in TransformerLens, `_W_K`, `_W_V`, `_b_K` and `_b_V` hold a map for each of them, which
    `W_K`, `W_V`, `b_K` and `b_V` show head by head; `hook_k` and `hook_v` have as many heads.
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


def attention(cfg: ModelConfig) -> Attention:
    """The attention that `cfg.n_key_value_heads` asks for."""
    return Attention(cfg) if cfg.n_key_value_heads is None else GroupedAttention(cfg)
