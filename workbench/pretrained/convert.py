"""Conversion of state dicts between our models and TransformerLens's HookedTransformer.

A model without recurrence has the same weight names as a HookedTransformer. Two things differ:
HookedTransformer keeps masks and rotary tables as buffers, and a tied model of ours stores its
embedding once, whereas HookedTransformer stores W_U and b_U as well.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from workbench.models import family
from workbench.models.base import LatentModel
from workbench.settings.config import ModelConfig

BUFFERS = ("mask", "IGNORE", "rotary_sin", "rotary_cos")
SHARED = ("embed.", "pos_embed.", "blocks.", "ln_final.", "unembed.")


class ConversionError(ValueError):
    """Error for weights that the other side cannot hold."""


def to_transformer_lens(model: LatentModel) -> dict[str, Tensor]:
    """Return the weights for a HookedTransformer that runs one loop of this model.

    Load them with `strict=False`, because they do not include HookedTransformer's own buffers.

    Raises:
        ConversionError: The model has layers or a recurrence that HookedTransformer lacks.
    """
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    foreign = [name for name in weights if not name.startswith(SHARED) or "rel_pos_bias" in name]
    if model.cfg.state_norm != "none":
        foreign.append("the norm on what a loop starts from (state_norm)")
    if foreign:
        raise ConversionError(f"a HookedTransformer has no place for {', '.join(foreign)}")
    written = {"unembed.W_U": model.W_U, "unembed.b_U": model.b_U}
    return weights | {name: t.detach().clone().contiguous() for name, t in written.items()}


def from_transformer_lens(state_dict: Mapping[str, Tensor], cfg: ModelConfig) -> dict[str, Tensor]:
    """Convert the weights of a HookedTransformer to those of a model with the config `cfg`.

    Raises:
        ConversionError: `cfg` ties the embeddings but the weights do not; or their names or shapes
            are not those of a model with this config.
    """
    weights = {
        name: tensor
        for name, tensor in state_dict.items()
        if name.rpartition(".")[2] not in BUFFERS
    }
    if not cfg.tie_embeddings:
        return _checked(weights, cfg)
    W_U, b_U = weights.pop("unembed.W_U"), weights.pop("unembed.b_U", torch.zeros(1))
    wanted = weights["embed.W_E"].T * cfg.readout_scale
    if W_U.shape != wanted.shape or not torch.allclose(W_U, wanted) or bool(b_U.any()):
        raise ConversionError(
            "the config ties the embeddings, but these weights have an unembedding of their own "
            f"(W_U is not W_E^T * {cfg.readout_scale:g}, or b_U is not zero); set "
            "tie_embeddings=False"
        )
    return _checked(weights, cfg)


def _checked(weights: dict[str, Tensor], cfg: ModelConfig) -> dict[str, Tensor]:
    """Return the weights if names and shapes fit `cfg`; recurrence weights may be missing."""
    with torch.device("meta"):
        wanted = family(cfg.family)(cfg).state_dict()
    missing = sorted(n for n in wanted.keys() - weights.keys() if n.startswith(SHARED))
    foreign = sorted(weights.keys() - wanted.keys())
    parts = [f"lack {', '.join(missing[:6])}"] if missing else []
    parts += [f"hold {', '.join(foreign[:6])}, for which it has no place"] if foreign else []
    if parts:
        raise ConversionError(
            f"these weights {' and '.join(parts)}; the config's normalization_type, use_qk_norm, "
            "positional_embedding_type and act_fn must be those of the HookedTransformer, and a "
            "final norm of another kind (final_rms) is none of ours"
        )
    for name in weights:
        if weights[name].shape != wanted[name].shape:
            raise ConversionError(
                f"{name} is {list(weights[name].shape)}; the config makes it "
                f"{list(wanted[name].shape)}"
            )
    return weights
