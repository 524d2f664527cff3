"""Loading pretrained transformers as hooked models: GPT-2, Llama, Qwen2 and Qwen3.

    model = from_pretrained("HuggingFaceTB/SmolLM2-135M-Instruct")
    model = from_pretrained("models/smollm2.gguf", family="looped", n_prelude=8, n_coda=8)

A source is a repository on the Hub (first example), a file (second example) or a folder. The
network is used only for Hub names. Weights are read from safetensors or GGUF, never from pickles.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workbench.models import family as family_named
from workbench.models import model_config
from workbench.models.base import LatentModel
from workbench.models.fresh import fresh
from workbench.pretrained.architectures import PretrainedError, architecture, listed, our_weights
from workbench.pretrained.sources import find_file
from workbench.settings.config import ModelConfig
from workbench.words.tokenizer import PretrainedVocabulary

# Modules that a family adds: no pretrained checkpoint has them, so the family initialises them
OWN = ("recurrence.", "perception.")
LATENT = "latent_token"  # config field: the token id that thoughts replace, if the family has any
BIASES = ("b_", "_b_")  # set to zero if the architecture has none


def from_pretrained(
    source: str,
    family: str = "transformer",
    *,
    gguf_file: str | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    add_tokens: Sequence[str] = (),
    tokens_like: str | None = None,
    seed: int = 0,
    **changes: Any,
) -> LatentModel:
    """Load a pretrained transformer into a model of a family.

    With the family `transformer`, the logits equal those of transformers' model. Other families use
    its layers, in order, as prelude, blocks and coda; the modules that the family adds are freshly
    initialised. In families with thoughts, thoughts replace the tokenizer's `<|latent|>` tokens.

    Args:
        source: A name on the Hub, a folder, or a GGUF file.
        family: The family of the model.
        gguf_file: The GGUF file to read, if a Hub repository or folder holds several.
        device: Device of the model.
        dtype: Data type of its weights.
        add_tokens: Tokens to add to the tokenizer, such as `words.tokenizer.SPECIALS`; the
            embedding, and the unembedding of an untied model, get a row for each. A row starts as
            the mean of all other rows plus noise of a tenth of their standard deviation.
        tokens_like: A token whose rows the added tokens copy instead; CoCoNuT uses "<<".
        seed: Seed of everything that is freshly initialised.
        **changes: Fields of the family's config, such as `n_loops`; they are added to the fields
            of the checkpoint or override them.

    Raises:
        PretrainedError: The source is missing, broken or of another architecture; weights are
            missing, left over or of another shape.
        ConfigError: A field is unknown, or its value is invalid.
    """
    found = find_file(source, gguf_file)
    config = found.config()
    kind = architecture(config.model_type)
    fields = _arrange(kind.shape(config), changes)
    vocabulary = found.vocabulary(fields["d_vocab"])
    n_words = 0 if vocabulary is None else vocabulary.n_tokens
    n_rows = fields["d_vocab"]
    added = _add(vocabulary, add_tokens, n_rows, source)
    if vocabulary is not None:
        _check_words(vocabulary, added, n_rows, source)
        fields["d_vocab"] = len(vocabulary)
    if LATENT in family_named(family).Config.model_fields and LATENT not in changes:
        fields[LATENT] = _latent(vocabulary, family, source)
    cfg = model_config({"family": family} | fields | changes, f"from_pretrained({source!r})")
    theirs = found.weights(config, dtype)
    if cfg.tie_embeddings and "lm_head.weight" in theirs and "tie_embeddings" not in changes:
        cfg = cfg.model_copy(update={"tie_embeddings": False})
    weights = our_weights(theirs, kind, cfg, _places(cfg))
    _untie(weights, cfg)
    _fit_positions(weights, cfg)
    if vocabulary is not None and added:
        _grow(weights, added, _like(vocabulary, tokens_like), n_words, seed)
    model = _assemble(cfg, weights, dtype, seed)
    model.tokenizer = vocabulary
    return model.to(device).eval()


def pretrained_shape(source: str) -> dict[str, Any]:
    """Return the config fields of a checkpoint, such as `d_model`, without reading its weights.

    Raises:
        PretrainedError: The source is missing, broken or of another architecture.
    """
    config = find_file(source).config()
    return architecture(config.model_type).shape(config)


def _arrange(fields: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the checkpoint's fields, with its layers split as `changes` specifies."""
    total = fields["n_layers"]
    prelude, coda = changes.get("n_prelude", 0), changes.get("n_coda", 0)
    looped = changes.get("n_layers")
    if not all(isinstance(number, int | None) for number in (prelude, coda, looped)):
        return fields  # the config's own validation raises the error
    looped = total - prelude - coda if looped is None else looped
    if prelude + looped + coda != total or looped < 1:
        raise PretrainedError(
            f"n_prelude={prelude}, n_layers={looped} and n_coda={coda} must be at least one layer "
            f"in the loop and {total} in all, as many as the checkpoint has"
        )
    return fields | {"n_layers": looped}


def _places(cfg: ModelConfig) -> list[str]:
    """Return our name of each layer of the checkpoint, such as `blocks.0`."""
    stacks = {"prelude": cfg.n_prelude, "blocks": cfg.n_layers, "coda": cfg.n_coda}
    return [f"{stack}.{layer}" for stack, layers in stacks.items() for layer in range(layers)]


def _add(
    vocabulary: PretrainedVocabulary | None, tokens: Sequence[str], n_rows: int, source: str
) -> list[int]:
    """Add tokens to the tokenizer; return the ids whose embedding rows are missing or unused."""
    if vocabulary is None:
        if tokens:
            raise PretrainedError(f"{source} has no tokenizer that {listed(tokens)} could go to")
        return []
    names = [tokens] if isinstance(tokens, str) else tokens
    new = vocabulary.add(names)
    return sorted({*new, *(t for t in map(vocabulary.special, names) if t >= n_rows)})


def _check_words(
    vocabulary: PretrainedVocabulary, added: list[int], n_rows: int, source: str
) -> None:
    lacking = [t for t in range(n_rows, vocabulary.n_tokens) if t not in added]
    if lacking:
        raise PretrainedError(
            f"the tokenizer of {source} has tokens that the model has no embedding for, "
            f"{listed([vocabulary.words[token] for token in lacking])}; name them in add_tokens"
        )


def _latent(vocabulary: PretrainedVocabulary | None, family: str, source: str) -> int:
    """Return the id of the token that thoughts replace.

    Raises:
        ValueError: There is no tokenizer, or it lacks the token.
    """
    if vocabulary is None:
        raise PretrainedError(
            f"{source} has no tokenizer; the family {family!r} needs latent_token, the token in "
            "whose places thoughts stand"
        )
    return vocabulary.special("<|latent|>")


def _untie(weights: dict[str, Tensor], cfg: ModelConfig) -> None:
    """Copy W_E to W_U if only the checkpoint ties them; drop an equal W_U if the model does."""
    if cfg.tie_embeddings and "unembed.W_U" in weights:
        W_U, W_E = weights["unembed.W_U"], weights["embed.W_E"]
        if W_U.shape == W_E.T.shape and torch.equal(W_U, W_E.T):
            del weights["unembed.W_U"]
    elif not cfg.tie_embeddings and "unembed.W_U" not in weights:
        weights["unembed.W_U"] = weights["embed.W_E"].T.contiguous()


def _fit_positions(weights: dict[str, Tensor], cfg: ModelConfig) -> None:
    """Cut the learned position embeddings to the length of a shorter context."""
    W_pos = weights.get("pos_embed.W_pos")
    if W_pos is not None and len(W_pos) > cfg.n_ctx:
        weights["pos_embed.W_pos"] = W_pos[: cfg.n_ctx].clone()


def _like(vocabulary: PretrainedVocabulary, text: str | None) -> int | None:
    """Return the id of the token whose rows new tokens copy, or None."""
    if text is None:
        return None
    tokens = vocabulary.encode(text)
    if len(tokens) != 1:
        raise PretrainedError(
            f"tokens_like={text!r} must be one token; this tokenizer makes {len(tokens)} of it"
        )
    return tokens[0]


def _grow(
    weights: dict[str, Tensor], added: list[int], like: int | None, n_words: int, seed: int
) -> None:
    """Initialise rows of W_E and columns of W_U for added tokens: spare ones or new ones."""
    generator = torch.Generator().manual_seed(seed)
    for name, turn in (("embed.W_E", False), ("unembed.W_U", True)):
        if name not in weights:
            continue
        rows = weights[name].T if turn else weights[name]
        known = rows[:n_words].float()
        lacking = max(max(added) + 1 - len(rows), 0)
        rows = torch.cat((rows, rows.new_zeros(lacking, rows.shape[1])))
        for token in added:
            if like is None:
                noise = torch.randn(rows.shape[1], generator=generator)
                start = known.mean(0) + 0.1 * known.std(0) * noise
            else:
                start = known[like]
            rows[token] = start.to(rows.dtype)
        weights[name] = rows.T.contiguous() if turn else rows


def _assemble(
    cfg: ModelConfig, weights: dict[str, Tensor], dtype: torch.dtype, seed: int
) -> LatentModel:
    """Build a model around these tensors, without first initialising weights at random."""
    cls = family_named(cfg.family)
    with torch.device("meta"):
        model = cls(cfg)
    wanted = model.state_dict()
    lacking = wanted.keys() - weights.keys()
    own = {name for name in lacking if name.startswith(OWN)}
    if own:
        # Drawn in the smallest model that has the same family-specific modules
        small = {"d_vocab": 1, "n_ctx": 1, "n_layers": 1, "n_prelude": 0, "n_coda": 0, "d_mlp": 1}
        drawn = fresh(lambda: cls(cfg.model_copy(update=small)), seed).state_dict()
        weights = weights | {name: drawn[name].to(dtype) for name in own}
    for name in lacking - own:
        if name.rpartition(".")[2].startswith(BIASES):
            weights[name] = torch.zeros(wanted[name].shape, dtype=dtype)
    _check_fit(weights, wanted)
    model.load_state_dict(weights, assign=True)
    return model


def _check_fit(weights: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Refuse weights whose names or shapes differ from the model's; name the first few."""
    missing = sorted(wanted.keys() - weights.keys())
    if missing:
        raise PretrainedError(f"the checkpoint lacks {listed(missing)}")
    foreign = sorted(weights.keys() - wanted.keys())
    if foreign:
        raise PretrainedError(f"this model has no place for the checkpoint's {listed(foreign)}")
    for name, tensor in weights.items():
        if tensor.shape != wanted[name].shape:
            raise PretrainedError(
                f"{name} is {list(tensor.shape)} in the checkpoint; this config makes it "
                f"{list(wanted[name].shape)}"
            )
