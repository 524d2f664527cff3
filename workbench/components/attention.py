"""Self-attention with two paths: fused without hooks on scores or pattern, explicit with them."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from workbench.components.norm import RMSNorm
from workbench.components.relative import RelativeBias
from workbench.components.rotary import Angles, Rotary
from workbench.hooks import HookPoint, is_heard
from workbench.settings.config import ModelConfig

# Up to this many keys, sums over broadcast products are faster than such small matrix products:
# 1.8 times for 512 questions of three tokens. Questions of the symbolic tasks are that short.
SHORT = 3


class Merged(NamedTuple):
    """A layer's query, key and value weights, joined for a single matrix product."""

    weight: Float[Tensor, "d_model qkv"]  # qkv = (head + 2·kv_head)·d_head
    bias: Float[Tensor, " qkv"]


class Frame(NamedTuple):
    """The rotary angles and the mask of a context, for one layer."""

    angles: Angles | None
    mask: Tensor | None  # bool (True: may attend), or float that is added to the scores


class KeyValues:
    """The key-value cache of all layers; each pass appends its own keys and values.

    Nothing is written in place, so gradients flow through all passes.
    """

    def __init__(self) -> None:
        self._kept: dict[Attention, tuple[Tensor, Tensor]] = {}

    def extend(
        self,
        layer: "Attention",
        k: Float[Tensor, "batch pos kv_head d_head"],
        v: Float[Tensor, "batch pos kv_head d_head"],
    ) -> tuple[
        Float[Tensor, "batch key kv_head d_head"], Float[Tensor, "batch key kv_head d_head"]
    ]:
        """Append keys and values to a layer's cache, and return all of them."""
        if layer in self._kept:
            earlier_k, earlier_v = self._kept[layer]
            k, v = torch.cat((earlier_k, k), dim=1), torch.cat((earlier_v, v), dim=1)
        self._kept[layer] = (k, v)
        return k, v

    def branched(self) -> "KeyValues":
        """Return a copy of the cache; later appends to either do not affect the other."""
        branch = KeyValues()
        branch._kept = dict(self._kept)
        return branch


@dataclass(frozen=True, eq=False)
class Context:
    """What attention needs from a batch besides its states; built anew for each pass."""

    positions: Int[Tensor, "rows pos"]  # of real tokens, from 0; a single row if all rows agree
    allowed: Bool[Tensor, "batch 1 query_pos key_pos"] | None  # None: causal, no padding
    merged: dict["Attention", Merged] = field(default_factory=dict)  # cache for all passes
    frames: dict["Attention", Frame] = field(default_factory=dict)  # cache for this pass
    earlier: KeyValues | None = None  # from earlier passes, if a forward pass has several
    key_positions: Int[Tensor, "rows key"] | None = None  # if there are more keys than queries


def context(
    tokens: Int[Tensor, "batch pos"], attention_mask: Int[Tensor, "batch pos"] | None
) -> Context:
    """Return the positions and causal mask of a batch, with padding on either side.

    A padding token attends only to itself, so that its state stays finite.
    """
    if attention_mask is None:
        return Context(torch.arange(tokens.shape[1], device=tokens.device)[None], None)
    positions, allowed = real_positions(tokens, attention_mask)
    itself = torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device)
    return Context(positions, (allowed & causal(tokens.shape[1], tokens.device)) | itself)


def real_positions(
    tokens: Int[Tensor, "batch pos"], attention_mask: Int[Tensor, "batch pos"] | None
) -> tuple[Int[Tensor, "rows pos"], Bool[Tensor, "batch 1 query_pos key_pos"]]:
    """Return positions from the first real token, and a mask that shows all real tokens.

    A padding token attends only to itself.
    """
    n_batch, n_pos = tokens.shape
    if attention_mask is None:
        everyone = torch.ones(1, 1, n_pos, n_pos, dtype=torch.bool, device=tokens.device)
        return torch.arange(n_pos, device=tokens.device)[None], everyone.expand(n_batch, 1, -1, -1)
    real = attention_mask.bool()
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    allowed = real[:, None, None, :] & real[:, None, :, None]
    itself = torch.eye(n_pos, dtype=torch.bool, device=tokens.device)
    return positions, allowed | itself


def causal(n_pos: int, device: torch.device) -> Bool[Tensor, "query_pos key_pos"]:
    """Return the causal mask: every position attends to itself and to earlier positions."""
    return torch.ones(n_pos, n_pos, dtype=torch.bool, device=device).tril()


class Attention(nn.Module):
    """Multi-head attention with TransformerLens's weight and hook names.

    W_Q, W_K and W_V start with standard deviation 1/√d_model, W_O with `output_init`/√d_model;
    biases start at zero.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        n_kv = cfg.n_key_value_heads or cfg.n_heads
        self.group = cfg.n_heads // n_kv  # query heads per key-value head
        std = cfg.d_model**-0.5
        self.W_Q = nn.Parameter(torch.randn(cfg.n_heads, cfg.d_model, cfg.d_head) * std)
        shape = (n_kv, cfg.d_model, cfg.d_head)
        self.keep_maps(*(nn.Parameter(torch.randn(shape) * std) for _ in range(2)))
        self.W_O = nn.Parameter(
            torch.randn(cfg.n_heads, cfg.d_head, cfg.d_model) * std * cfg.output_init
        )
        self.b_Q = nn.Parameter(torch.zeros(cfg.n_heads, cfg.d_head))
        self.keep_biases(*(nn.Parameter(torch.zeros(n_kv, cfg.d_head)) for _ in range(2)))
        self.b_O = nn.Parameter(torch.zeros(cfg.d_model))
        rotary = cfg.positional_embedding_type == "rotary"
        self.rotary = Rotary(cfg) if rotary else None
        relative = cfg.positional_embedding_type == "relative"
        self.rel_pos_bias = RelativeBias(cfg) if relative else None
        self.q_norm = RMSNorm(cfg, cfg.d_head) if cfg.use_qk_norm else None
        self.k_norm = RMSNorm(cfg, cfg.d_head) if cfg.use_qk_norm else None
        self.hook_q = HookPoint()  # [batch pos head d_head]
        self.hook_k = HookPoint()  # [batch pos kv_head d_head]
        self.hook_v = HookPoint()  # [batch pos kv_head d_head]
        if rotary:
            self.hook_rot_q = HookPoint()  # [batch pos head d_head]
            self.hook_rot_k = HookPoint()  # [batch pos kv_head d_head]
        self.hook_attn_scores = HookPoint()  # [batch head query_pos key_pos]
        self.hook_pattern = HookPoint()  # [batch head query_pos key_pos]
        self.hook_z = HookPoint()  # [batch pos head d_head]
        self.dropout = cfg.dropout  # on the pattern, in training

    def forward(
        self, x: Float[Tensor, "batch pos d_model"], context: Context
    ) -> Float[Tensor, "batch pos d_model"]:
        if self not in context.merged:  # later loops and passes reuse it
            context.merged[self] = self._merge()
        if self not in context.frames:
            context.frames[self] = self._frame(context)
        weight, bias = context.merged[self]
        angles, mask = context.frames[self]
        n_heads, d_head = self.b_Q.shape
        qkv = F.linear(x, weight.T, bias).view(*x.shape[:2], -1, d_head)
        q, k, v = qkv.split((n_heads, n_heads // self.group, n_heads // self.group), 2)
        q, k, v = self.hook_q(q), self.hook_k(k), self.hook_v(v)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if angles is not None:
            q = self.hook_rot_q(angles.turn(q))
            k = self.hook_rot_k(angles.turn(k))
        if context.earlier is not None:
            k, v = context.earlier.extend(self, k, v)
        heard = is_heard(self.hook_attn_scores, self.hook_pattern)
        mix = self._explicit if heard or _is_trained_on_cpu(mask) else self._fused
        z = self.hook_z(mix(q, k, v, mask))
        return F.linear(z.flatten(2), self.W_O.flatten(0, 1).T, self.b_O)

    def keep_maps(self, W_K: nn.Parameter, W_V: nn.Parameter) -> None:
        """Store the key and value weights, [kv_head d_model d_head]."""
        self.W_K, self.W_V = W_K, W_V

    def keep_biases(self, b_K: nn.Parameter, b_V: nn.Parameter) -> None:
        """Store the key and value biases, [kv_head d_head]."""
        self.b_K, self.b_V = b_K, b_V

    def kept(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the stored key and value parameters: W_K, W_V, b_K, b_V."""
        return self.W_K, self.W_V, self.b_K, self.b_V

    def _merge(self) -> Merged:
        W_K, W_V, b_K, b_V = self.kept()
        weights = [weight.transpose(0, 1) for weight in (self.W_Q, W_K, W_V)]
        return Merged(torch.cat(weights, 1).flatten(1), torch.cat((self.b_Q, b_K, b_V)).flatten())

    def _frame(self, context: Context) -> Frame:
        angles = self.rotary(context.positions, self.b_O.dtype) if self.rotary is not None else None
        mask = context.allowed
        if self.rel_pos_bias is not None:
            allowed = causal(context.positions.shape[1], self.b_O.device) if mask is None else mask
            bias = self.rel_pos_bias(context.positions, context.key_positions)
            mask = bias.masked_fill(~allowed, -torch.inf)
        return Frame(angles, mask)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        dropout = self.dropout if self.training else 0.0
        z = F.scaled_dot_product_attention(
            q, k, v, mask, dropout, is_causal=mask is None, enable_gqa=self.group > 1
        )
        return z.transpose(1, 2)

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            mask = causal(q.shape[1], q.device)
        if mask.dtype == torch.bool:
            mask = q.new_zeros(mask.shape).masked_fill(~mask, -torch.inf)
        if self.group > 1:
            k, v = (t.repeat_interleave(self.group, dim=2) for t in (k, v))
        short = k.shape[1] <= SHORT
        q, k, v = ((q / q.shape[-1] ** 0.5).transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        scores = (q[..., None, :] * k[..., None, :, :]).sum(-1) if short else q @ k.mT
        pattern = self.hook_pattern(self.hook_attn_scores(scores + mask).softmax(-1))
        kept = F.dropout(pattern, self.dropout, self.training)
        z = (kept[..., None] * v[..., None, :, :]).sum(-2) if short else kept @ v
        return z.transpose(1, 2)


def _is_trained_on_cpu(mask: Tensor | None) -> bool:
    """Return whether the mask needs a gradient on the CPU, which has no fused kernel for that.

    PyTorch's fallback takes 1.5 times as long as the explicit path.
    """
    return mask is not None and mask.requires_grad and mask.device.type == "cpu"
