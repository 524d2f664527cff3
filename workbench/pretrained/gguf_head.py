"""GGUF settings and tensors that transformers does not read: each is applied or refused by name.

transformers fills in defaults for what it does not find and drops what it does not recognise. A
setting or a tensor that changes the results would otherwise be lost silently.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from workbench.pretrained.architectures import PretrainedError, listed

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# Settings under the architecture's prefix that transformers reads or that do not affect results
READ = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "rope.freq_base",
    "tensor_data_layout",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "pooling_type",
}
WIDTHS = ("attention.key_length", "attention.value_length", "rope.dimension_count")
# Settings that have no effect at these values
IDLE: dict[str, tuple[Any, ...]] = {
    "rope.scaling.type": ("none",),
    "rope.scaling.factor": (0.0, 1.0),
    "rope.scaling.attn_factor": (1.0,),
    "rope.scale_linear": (0.0, 1.0),
    "attention.sliding_window": (0,),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "use_parallel_residual": (False,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "logit_scale": (1.0,),
}
# RoPE scaling of Llama 3.1 and later; a GGUF file stores the resulting factors, not these numbers
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
ROPE_FREQS = "rope_freqs.weight"
LAYER = re.compile(r"blk\.(\d+)\.(.+)\.(weight|bias)")
OUTSIDE = {
    "gpt2": ("token_embd", "output", "output_norm", "position_embd"),
    "llama": ("token_embd", "output", "output_norm"),
}
IN_A_LAYER = {
    "gpt2": ("attn_norm", "attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down"),
    "llama": (
        *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output"),
        *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
    ),
}
# Optional weights beyond a plain Llama's: name in the GGUF file to name in transformers' state dict
SOMETIMES = {
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_output.bias": "self_attn.o_proj.bias",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
}


@dataclass(frozen=True)
class GgufHead:
    """Header of a GGUF file: its settings, tensor names and rotary frequency factors."""

    path: str
    architecture: str
    settings: Mapping[str, Any]
    tensors: frozenset[str]
    rope_freqs: Tensor | None

    def refine(self, config: "PretrainedConfig") -> None:
        """Add to a config the settings that transformers left out.

        Raises:
            PretrainedError: The file has a setting that our configs cannot express.
        """
        if self.settings.get("split.count", 1) > 1:
            raise PretrainedError(
                f"{self.path} is one of {self.settings['split.count']} parts of a model; join them "
                "first, as `llama-gguf-split --merge` does"
            )
        self._refine_width(config)
        own = self.architecture + "."
        foreign = [
            f"{name}={value!r:.40}"
            for name, value in self.settings.items()
            if name.startswith(own) and not self._is_known(name.removeprefix(own), value)
        ]
        if foreign:
            raise PretrainedError(
                f"{self.path} requires {listed(foreign)}, which would be lost on the way"
            )
        self._refine_rope(config)

    def _is_known(self, name: str, value: Any) -> bool:
        return name in READ or name in WIDTHS or value in IDLE.get(name, ())

    def _refine_width(self, config: "PretrainedConfig") -> None:
        """Set the width of a head, which transformers takes from other settings."""
        widths = {
            name: self.settings[f"{self.architecture}.{name}"]
            for name in WIDTHS
            if f"{self.architecture}.{name}" in self.settings
        }
        if len(set(widths.values())) > 1:
            said = ", ".join(f"{name}={width}" for name, width in widths.items())
            raise PretrainedError(f"{self.path} requires heads of several widths ({said})")
        if not widths:
            return
        width = next(iter(widths.values()))
        if hasattr(config, "head_dim"):
            config.head_dim = width
        elif width * config.num_attention_heads != config.hidden_size:
            raise PretrainedError(
                f"{self.path} requires heads of width {width}; {config.num_attention_heads} of "
                f"them do not make {config.hidden_size}"
            )

    def _refine_rope(self, config: "PretrainedConfig") -> None:
        """Set the scaling of the rotary frequencies used by Llama 3.1 and later."""
        factors = self.rope_freqs
        if factors is None or bool((factors == 1).all()):
            return
        rope = dict(config.rope_parameters)
        scaling = LLAMA3 | {"factor": float(factors.max())}
        wanted = _llama3_factors(len(factors), float(rope["rope_theta"]), scaling)
        if not torch.allclose(factors, wanted, rtol=1e-4):
            raise PretrainedError(
                f"{self.path} scales the rotary frequencies ({ROPE_FREQS}) in another way than "
                "Llama 3.1 does, which our models lack"
            )
        config.rope_parameters = rope | scaling | {"rope_type": "llama3"}

    def check_read(self, names: frozenset[str]) -> None:
        """Refuse a file from which transformers dropped tensors.

        Args:
            names: Names in the state dict that transformers read from the file.

        Raises:
            PretrainedError: At least one tensor was dropped.
        """
        unread = [t for t in sorted(self.tensors - {ROPE_FREQS}) if not self._has_place(t, names)]
        if unread:
            raise PretrainedError(f"{self.path} holds weights without a place: {listed(unread)}")

    def _has_place(self, tensor: str, names: frozenset[str]) -> bool:
        """Return whether transformers reads a tensor."""
        like = "gpt2" if self.architecture == "gpt2" else "llama"
        found = LAYER.fullmatch(tensor)
        if found is None:
            part, _, kind = tensor.rpartition(".")
            return part in OUTSIDE[like] and (kind == "weight" or like == "gpt2")
        layer, part, kind = found.groups()
        if f"{part}.{kind}" in SOMETIMES and like == "llama":
            return f"model.layers.{layer}.{SOMETIMES[f'{part}.{kind}']}" in names
        return part in IN_A_LAYER[like] and (kind == "weight" or like == "gpt2")


def read_head(path: Path) -> GgufHead:
    """Read the header of a GGUF file."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    settings = {
        name: field.contents()
        for name, field in reader.fields.items()
        if not name.startswith(("tokenizer.", "GGUF."))
    }
    freqs = [
        torch.from_numpy(tensor.data.copy()).float().flatten()
        for tensor in reader.tensors
        if tensor.name == ROPE_FREQS
    ]
    return GgufHead(
        str(path),
        str(settings["general.architecture"]),
        settings,
        frozenset(tensor.name for tensor in reader.tensors),
        freqs[0] if freqs else None,
    )


def _llama3_factors(n: int, base: float, scaling: Mapping[str, float]) -> Tensor:
    """Return the factor by which Llama 3.1 divides each rotary frequency, [d_head / 2]."""
    lengths = 2 * math.pi * base ** (torch.arange(n) / n)  # wavelengths, in tokens
    turns = scaling["original_max_position_embeddings"] / lengths
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return 1 / ((1 - share) / scaling["factor"] + share)
