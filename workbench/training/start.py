"""Initial weights from another run or from a pretrained transformer."""

from typing import Any

import torch
from torch import Tensor

from workbench.models.base import LatentModel
from workbench.pretrained import from_pretrained, pretrained_shape
from workbench.runs import check_fits, load_run
from workbench.settings.config import ModelConfig
from workbench.words.tokenizer import SPECIALS, PretrainedVocabulary, Vocabulary

PRETRAINED = "pretrained:"  # prefix of a Hub id, a folder or a GGUF file
POSITIONS = {"W_pos": 0, "b": 1}  # tables by position or distance: name and axis
LIKE = "<<"  # CoCoNuT initialises its special tokens with this one, if it is a single token


def start_shape(start: str | None) -> dict[str, Any]:
    """Return the config fields that a start determines: those of the layers, not the recurrence.

    Raises:
        FileError: There is no such run.
        PretrainedError: There is no such transformer.
    """
    if start is None:
        return {}
    if start.startswith(PRETRAINED):
        return pretrained_shape(start.removeprefix(PRETRAINED))
    shape = load_run(start).recipe.model
    return {name: shape[name] for name in ModelConfig.model_fields.keys() - {"family"}}


def start_from(model: LatentModel, start: str, vocabulary: Vocabulary) -> None:
    """Load initial weights into a model.

    Recurrence weights and positions that the start lacks stay freshly initialised, and so do
    parameters that are not trained.

    Args:
        model: The model that is to be trained.
        start: A run, or a pretrained transformer after `pretrained:`.
        vocabulary: The task's vocabulary.

    Raises:
        FileError: There is no such run, or its weights do not fit.
        PretrainedError: There is no such transformer.
    """
    if start.startswith(PRETRAINED):
        source = start.removeprefix(PRETRAINED)
        weights = _pretrained(model, source, vocabulary)
    else:
        weights = load_run(start).model.state_dict()
    own = model.state_dict()
    new = {n: t for n, t in own.items() if n.startswith("recurrence.") and n not in weights}
    kept = {
        name: _longer(name, tensor, own)
        for name, tensor in weights.items()
        if name in own or not name.startswith("recurrence.")
    }
    check_fits(model, {n: t.shape for n, t in (kept | new).items()}, start)
    fixed = {n: own[n] for n, p in model.named_parameters() if not p.requires_grad}
    model.load_state_dict(kept | new | fixed)


def _longer(name: str, tensor: Tensor, own: dict[str, Tensor]) -> Tensor:
    """Extend a shorter table of positions with the last entries of the model's own table."""
    axis = POSITIONS.get(name.rpartition(".")[2]) if "rel_pos" in name or "W_pos" in name else None
    if axis is None or name not in own or tensor.shape[axis] >= own[name].shape[axis]:
        return tensor
    beyond = own[name].narrow(axis, tensor.shape[axis], own[name].shape[axis] - tensor.shape[axis])
    return torch.cat((tensor, beyond), dim=axis)


def _pretrained(model: LatentModel, source: str, vocabulary: Vocabulary) -> dict[str, Tensor]:
    """Return a transformer's weights, with rows for the special tokens that thoughts need."""
    one = isinstance(vocabulary, PretrainedVocabulary) and len(vocabulary.encode(LIKE)) == 1
    found = from_pretrained(
        source,
        model.cfg.family,
        add_tokens=SPECIALS,
        tokens_like=LIKE if one else None,
        n_ctx=model.cfg.n_ctx,
    )
    return found.state_dict()
