"""Make the golden files: what HookedTransformer of transformer-lens 3.9.0 computes.

Each `{case}.safetensors` beside this script holds one tiny randomly initialised model: its
`tokens` and `logits`, its parameters as `weights/{state dict key}` (buffers are left out) and
every activation of `run_with_cache` as `cache/{hook name}`. The metadata names the
transformer-lens version and, as JSON under `cfg`, the HookedTransformerConfig fields that matter.
Another run on the same machine gives the same tensors, but safetensors does not fix the order of
the metadata, so the files may differ by that.

transformer-lens brings many dependencies along, so run this in an environment of its own:

    python3 -m venv golden-venv
    golden-venv/bin/pip install 'torch==2.13.0' 'transformer-lens==3.9.0' safetensors
    golden-venv/bin/python make_golden.py
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformer_lens import HookedTransformer, HookedTransformerConfig

VERSION = "3.9.0"
SEED = 0
N_TOKENS = (2, 6)

SIZES = {
    "d_model": 16,
    "n_heads": 2,
    "d_head": 8,
    "n_layers": 2,
    "d_mlp": 32,
    "n_ctx": 8,
    "d_vocab": 11,
}
LEARNED = {"positional_embedding_type": "standard"}
ROTARY = {"positional_embedding_type": "rotary", "rotary_dim": 8}

CASES: dict[str, dict[str, Any]] = {
    "ln_learned_gelu": {"normalization_type": "LN", "act_fn": "gelu", **LEARNED},
    "rms_learned_relu": {"normalization_type": "RMS", "act_fn": "relu", **LEARNED},
    "rms_rotary_gelu_new": {"normalization_type": "RMS", "act_fn": "gelu_new", **ROTARY},
    "ln_rotary_silu": {"normalization_type": "LN", "act_fn": "silu", **ROTARY},
    "rms_rotary_silu_grouped_gated": {
        "normalization_type": "RMS",
        "act_fn": "silu",
        "n_key_value_heads": 1,
        "gated_mlp": True,
        **ROTARY,
    },
}

RECORDED_FIELDS = (
    *SIZES,
    "d_vocab_out",
    "n_key_value_heads",
    "normalization_type",
    "eps",
    "final_rms",
    "positional_embedding_type",
    "rotary_dim",
    "rotary_base",
    "rotary_adjacent_pairs",
    "attention_dir",
    "use_attn_scale",
    "attn_scale",
    "act_fn",
    "gated_mlp",
    "attn_only",
    "parallel_attn_mlp",
)
BUFFERS = ("mask", "IGNORE", "rotary_sin", "rotary_cos")


def randomise(model: HookedTransformer, generator: torch.Generator) -> None:
    """Draw every parameter, biases and norm gains included, so that none goes unnoticed."""
    for name, parameter in model.named_parameters():
        leaf = name.rpartition(".")[2]
        noise = torch.randn(parameter.shape, generator=generator)
        if leaf == "w":
            value = 1 + 0.3 * noise
        elif leaf == "W_E":
            value = noise
        elif leaf == "W_pos":
            value = 0.5 * noise
        else:
            value = 0.3 * noise
        parameter.data.copy_(value)


def make_case(fields: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Build one model, run it, and return the tensors and the metadata of its golden file."""
    cfg = HookedTransformerConfig(**SIZES, **fields, device="cpu")
    model = HookedTransformer(cfg).eval()
    generator = torch.Generator().manual_seed(SEED)
    randomise(model, generator)
    tokens = torch.randint(cfg.d_vocab, N_TOKENS, generator=generator)
    with torch.no_grad():
        logits, cache = model.run_with_cache(tokens, return_cache_object=False)

    tensors = {"tokens": tokens, "logits": logits}
    for key, weight in model.state_dict().items():
        if key.rpartition(".")[2] not in BUFFERS:
            tensors[f"weights/{key}"] = weight
    for name, activation in cache.items():
        tensors[f"cache/{name}"] = activation
    # Several activations share memory, which safetensors refuses: copy each.
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}

    recorded = {field: getattr(cfg, field) for field in RECORDED_FIELDS}
    # json wants plain numbers, and attn_scale is numpy's.
    metadata = {"cfg": json.dumps(recorded, default=float), "transformer_lens": VERSION}
    return tensors, metadata


def main() -> None:
    """Write the golden file of every case beside this script."""
    if (installed := version("transformer-lens")) != VERSION:
        raise SystemExit(f"needs transformer-lens=={VERSION}, found {installed}")
    for case, fields in CASES.items():
        tensors, metadata = make_case(fields)
        save_file(tensors, Path(__file__).with_name(f"{case}.safetensors"), metadata=metadata)


if __name__ == "__main__":
    main()
