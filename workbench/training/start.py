"""Weights to begin with: those of another run, or of a pretrained transformer."""

from typing import Any

from torch import Tensor

from workbench.models.base import LatentModel
from workbench.pretrained import from_pretrained, pretrained_shape
from workbench.runs import check_fits, load_run
from workbench.tokenizer import SPECIALS, PretrainedVocabulary, Vocabulary

PRETRAINED = "pretrained:"  # before a Hub id, a folder or a GGUF file
LIKE = "<<"  # the token as which CoCoNuT's special tokens begin, where it is one


def start_shape(start: str | None) -> dict[str, Any]:
    """What a start says of the model's shape: everything, or nothing."""
    if start is None or not start.startswith(PRETRAINED):
        return {}
    return pretrained_shape(start.removeprefix(PRETRAINED))


def start_from(model: LatentModel, start: str, vocabulary: Vocabulary) -> None:
    """Take over weights; a recurrence that they lack keeps its fresh ones.

    Args:
        model: The model that is to be trained.
        start: A run, or a pretrained transformer after `pretrained:`.
        vocabulary: The task's.

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
    kept = {n: t for n, t in weights.items() if n in own or not n.startswith("recurrence.")}
    check_fits(model, {n: t.shape for n, t in (kept | new).items()}, start)
    model.load_state_dict(kept | new)


def _pretrained(model: LatentModel, source: str, vocabulary: Vocabulary) -> dict[str, Tensor]:
    """A transformer's weights, with rows for the tokens that thoughts need."""
    one = isinstance(vocabulary, PretrainedVocabulary) and len(vocabulary.encode(LIKE)) == 1
    found = from_pretrained(
        source,
        model.cfg.family,
        add_tokens=SPECIALS,
        tokens_like=LIKE if one else None,
        n_ctx=model.cfg.n_ctx,
    )
    return found.state_dict()
