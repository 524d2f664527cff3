"""Architectures of pretrained transformers, mapped to our config fields and weight names.

Each consists of a table from transformers' weight names to ours, with the rearrangement of the
axes, and a function that reads a config of transformers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from einops import rearrange
from torch import Tensor

from workbench.settings.config import Activation, ModelConfig, nearest

if TYPE_CHECKING:
    from transformers import PretrainedConfig

Names = Mapping[str, tuple[tuple[str, ...], str]]  # their name: (our names, einops pattern)


class PretrainedError(ValueError):
    """Error for a pretrained model that cannot be loaded."""


@dataclass(frozen=True)
class Architecture:
    """Mapping from one of transformers' architectures to our config and weights."""

    shape: Callable[["PretrainedConfig"], dict[str, Any]]  # returns fields of our config
    names: Names  # for weights outside the layers
    layer: re.Pattern[str]  # prefix of a layer's weights; its group is the layer's number
    layer_names: Names  # for weights of a layer, without the prefix


SAME, TURNED = "... -> ...", "a b -> b a"
INTO_HEADS = "(head d_head) d_model -> head d_model d_head"
BIAS_OF_HEADS = "(head d_head) -> head d_head"
OUT_OF_HEADS = "d_model (head d_head) -> head d_head d_model"

# transformers' Conv1D orients its weights as we do, with Q, K, V and heads concatenated in one axis
GPT2_NAMES: Names = {
    "transformer.wte.weight": (("embed.W_E",), SAME),
    "transformer.wpe.weight": (("pos_embed.W_pos",), SAME),
    "transformer.ln_f.weight": (("ln_final.w",), SAME),
    "transformer.ln_f.bias": (("ln_final.b",), SAME),
    "lm_head.weight": (("unembed.W_U",), TURNED),
}
GPT2_LAYER: Names = {
    "ln_1.weight": (("ln1.w",), SAME),
    "ln_1.bias": (("ln1.b",), SAME),
    "attn.c_attn.weight": (
        ("attn.W_Q", "attn.W_K", "attn.W_V"),
        "d_model (qkv head d_head) -> qkv head d_model d_head",
    ),
    "attn.c_attn.bias": (
        ("attn.b_Q", "attn.b_K", "attn.b_V"),
        "(qkv head d_head) -> qkv head d_head",
    ),
    "attn.c_proj.weight": (("attn.W_O",), "(head d_head) d_model -> head d_head d_model"),
    "attn.c_proj.bias": (("attn.b_O",), SAME),
    "ln_2.weight": (("ln2.w",), SAME),
    "ln_2.bias": (("ln2.b",), SAME),
    "mlp.c_fc.weight": (("mlp.W_in",), SAME),
    "mlp.c_fc.bias": (("mlp.b_in",), SAME),
    "mlp.c_proj.weight": (("mlp.W_out",), SAME),
    "mlp.c_proj.bias": (("mlp.b_out",), SAME),
}
LLAMA_NAMES: Names = {
    "model.embed_tokens.weight": (("embed.W_E",), SAME),
    "model.norm.weight": (("ln_final.w",), SAME),
    "lm_head.weight": (("unembed.W_U",), TURNED),
}
LLAMA_LAYER: Names = {
    "input_layernorm.weight": (("ln1.w",), SAME),
    "self_attn.q_proj.weight": (("attn.W_Q",), INTO_HEADS),
    "self_attn.k_proj.weight": (("attn.W_K",), INTO_HEADS),
    "self_attn.v_proj.weight": (("attn.W_V",), INTO_HEADS),
    "self_attn.o_proj.weight": (("attn.W_O",), OUT_OF_HEADS),
    "self_attn.q_proj.bias": (("attn.b_Q",), BIAS_OF_HEADS),
    "self_attn.k_proj.bias": (("attn.b_K",), BIAS_OF_HEADS),
    "self_attn.v_proj.bias": (("attn.b_V",), BIAS_OF_HEADS),
    "self_attn.o_proj.bias": (("attn.b_O",), SAME),
    "self_attn.q_norm.weight": (("attn.q_norm.w",), SAME),
    "self_attn.k_norm.weight": (("attn.k_norm.w",), SAME),
    "post_attention_layernorm.weight": (("ln2.w",), SAME),
    "mlp.gate_proj.weight": (("mlp.W_gate",), TURNED),
    "mlp.up_proj.weight": (("mlp.W_in",), TURNED),
    "mlp.down_proj.weight": (("mlp.W_out",), TURNED),
}
GROUPED = {f"attn.{name}": f"attn._{name}" for name in ("W_K", "W_V", "b_K", "b_V")}

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


def gpt2_shape(config: "PretrainedConfig") -> dict[str, Any]:
    """Return our config fields for a GPT-2."""
    _refuse(
        config,
        {
            "scores that are not scaled (scale_attn_weights)": not config.scale_attn_weights,
            "scores scaled by layer": config.scale_attn_by_inverse_layer_idx,
            "cross-attention": config.add_cross_attention,
        },
    )
    return {
        "d_vocab": config.vocab_size,
        "n_ctx": config.n_positions,
        "d_model": config.n_embd,
        "n_heads": config.n_head,
        "n_layers": config.n_layer,
        "d_mlp": config.n_inner or 4 * config.n_embd,
        "act_fn": _activation(config.activation_function),
        "normalization_type": "LN",
        "eps": config.layer_norm_epsilon,
        "positional_embedding_type": "standard",
        "tie_embeddings": config.tie_word_embeddings,
        "logit_scale": 1.0,
    }


def llama_shape(config: "PretrainedConfig") -> dict[str, Any]:
    """Return our config fields for a Llama, Qwen2 or Qwen3."""
    rope = _rope(config)
    kind = rope.get("rope_type", "default")
    windows = [kind for kind in getattr(config, "layer_types", None) or () if "full" not in kind]
    _refuse(
        config,
        {
            "biases of the perceptron (mlp_bias)": getattr(config, "mlp_bias", False),
            f"rotary positions of type {kind!r}": kind not in ("default", "llama3"),
            "rotary positions of a part of each head": rope.get("partial_rotary_factor", 1) != 1,
            "attention within a window (sliding_attention)": bool(windows),
        },
    )
    d_model, n_heads = config.hidden_size, config.num_attention_heads
    d_head = getattr(config, "head_dim", None) or d_model // n_heads
    n_kv = config.num_key_value_heads
    return {
        "d_vocab": config.vocab_size,
        "n_ctx": config.max_position_embeddings,
        "d_model": d_model,
        "n_heads": n_heads,
        "n_layers": config.num_hidden_layers,
        "d_mlp": config.intermediate_size,
        "n_key_value_heads": None if n_kv == n_heads else n_kv,
        "head_width": None if d_head * n_heads == d_model else d_head,
        "use_qk_norm": config.model_type == "qwen3",
        "gated_mlp": True,
        "act_fn": _activation(config.hidden_act),
        "normalization_type": "RMS",
        "eps": config.rms_norm_eps,
        "positional_embedding_type": "rotary",
        "rotary_base": float(rope["rope_theta"]),
        "rotary_scaling": None if kind == "default" else _scaling(rope),
        "tie_embeddings": config.tie_word_embeddings,
        "logit_scale": 1.0,
    }


GPT2 = Architecture(gpt2_shape, GPT2_NAMES, re.compile(r"transformer\.h\.(\d+)\."), GPT2_LAYER)
LLAMA = Architecture(llama_shape, LLAMA_NAMES, re.compile(r"model\.layers\.(\d+)\."), LLAMA_LAYER)
ARCHITECTURES = {"gpt2": GPT2, "llama": LLAMA, "qwen2": LLAMA, "qwen3": LLAMA}


def architecture(name: str) -> Architecture:
    """Return an architecture by transformers' `model_type`.

    Raises:
        PretrainedError: The architecture is not supported.
    """
    if name not in ARCHITECTURES:
        raise PretrainedError(
            f"models of the architecture {name!r} cannot be loaded; {nearest(name, ARCHITECTURES)}"
        )
    return ARCHITECTURES[name]


def our_weights(
    theirs: dict[str, Tensor], kind: Architecture, cfg: ModelConfig, places: list[str]
) -> dict[str, Tensor]:
    """Convert weights to our names and shapes; `theirs` is emptied in the process.

    Args:
        theirs: The state dict of transformers' model.
        kind: Its architecture.
        cfg: The config of our model.
        places: Our name of each of its layers, such as `blocks.0`.

    Raises:
        PretrainedError: Our model has no parameter for a weight.
    """
    ours: dict[str, Tensor] = {}
    foreign = []
    for name in list(theirs):
        tensor = theirs.pop(name)
        found = kind.layer.match(name)
        names = kind.names if found is None else kind.layer_names
        row = names.get(name if found is None else name[found.end() :])
        if row is None:
            foreign.append(name)
            continue
        targets, pattern = row
        prefix = "" if found is None else f"{places[int(found[1])]}."
        sizes = {"d_head": cfg.d_head} if "d_head" in pattern else {}
        if len(targets) > 1:
            sizes["qkv"] = len(targets)
        turned = rearrange(tensor, pattern, **sizes)
        parts: Iterable[Tensor] = turned if len(targets) > 1 else [turned]
        for target, part in zip(targets, parts, strict=True):
            if cfg.n_key_value_heads is not None:
                target = GROUPED.get(target, target)
            # Copy if the axes changed: a view would keep the original tensor in memory
            ours[prefix + target] = part.contiguous() if len(targets) == 1 else part.clone()
    if foreign:
        raise PretrainedError(f"the checkpoint holds weights without a place: {listed(foreign)}")
    return ours


def listed(names: Iterable[str], most: int = 6) -> str:
    """Join names for an error message; of many, only the first few."""
    known = list(names)
    more = f" … ({len(known)} in all)" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def _activation(name: str) -> Activation:
    if name not in ACTIVATIONS:
        raise PretrainedError(f"no activation {name!r}; {nearest(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _rope(config: "PretrainedConfig") -> dict[str, Any]:
    """Return the type, base and scaling factors of the rotary positions."""
    rope = dict(getattr(config, "rope_parameters", None) or {})
    if "rope_theta" not in rope:
        raise PretrainedError("the checkpoint's config does not say rope_theta, the rotary base")
    return rope


def _scaling(rope: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "factor": float(rope["factor"]),
        "low_freq_factor": float(rope["low_freq_factor"]),
        "high_freq_factor": float(rope["high_freq_factor"]),
        "original_ctx_len": int(rope["original_max_position_embeddings"]),
    }


def _refuse(config: "PretrainedConfig", lacking: Mapping[str, bool]) -> None:
    wanted = [what for what, asked in lacking.items() if asked]
    if wanted:
        raise PretrainedError(
            f"this {config.model_type} requires {' and '.join(wanted)}, which our models lack"
        )
