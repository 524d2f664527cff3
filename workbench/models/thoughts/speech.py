"""Greedy generation after a prompt with thoughts, with a key-value cache or without it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.models.thoughts.thinking import ThoughtsSoFar

if TYPE_CHECKING:
    from workbench.models.thoughts.thought import ThoughtModel

Say = Callable[[Int[Tensor, "batch pos"], int], Float[Tensor, "batch d_vocab"]]


def generate(
    model: "ThoughtModel",
    tokens: Int[Tensor, "batch pos"],
    n_new: int,
    mask: Int[Tensor, "batch pos"],
    stop_at: int | None,
    recompute: bool,
) -> Int[Tensor, "batch longer"]:
    """Return the tokens with the likeliest ones appended; see `ThoughtModel.generate`."""
    if n_new < 1:
        raise ValueError(f"max_new_tokens={n_new} must be at least 1")
    longest = int(mask.sum(1).max()) + n_new
    if longest > model.cfg.n_ctx:
        raise ValueError(
            f"{longest - n_new} tokens and {n_new} new ones do not fit the model's "
            f"n_ctx={model.cfg.n_ctx}"
        )
    model.clock.given = tokens.shape[1]
    try:
        return _append(model, tokens, n_new, mask, stop_at, recompute)
    finally:
        model.clock.given = None


def _append(
    model: "ThoughtModel",
    tokens: Tensor,
    n_new: int,
    mask: Tensor,
    stop_at: int | None,
    recompute: bool,
) -> Tensor:
    say = _recomputing(model, mask) if recompute else _remembering(model, tokens, mask)
    stopped = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    for said in range(n_new):
        logits = say(tokens, said)
        logits[:, model.cfg.latent_token] = -torch.inf  # the latent token is not a word
        new = logits.argmax(-1)
        if stop_at is not None:
            new = torch.where(stopped, stop_at, new)
            stopped = stopped | (new == stop_at)
        tokens = torch.cat((tokens, new[:, None]), dim=1)
        if bool(stopped.all()):
            break
    return tokens


def _recomputing(model: "ThoughtModel", mask: Tensor) -> Say:
    """Build the function that computes the next token's logits with a whole forward pass."""

    def say(tokens: Tensor, said: int) -> Tensor:
        known = torch.cat((mask, mask.new_ones(len(mask), said)), dim=1)
        columns = torch.arange(known.shape[1], device=known.device)
        last = torch.where(known.bool(), columns, -1).max(1).values
        return model(tokens, attention_mask=known, logits_at=last, recompute=True)

    return say


def _remembering(model: "ThoughtModel", prompt: Tensor, mask: Tensor) -> Say:
    """Build the function that computes the next token's logits from the last token and a cache."""
    passes = model.plan(prompt, mask)
    thinking = ThoughtsSoFar(model, prompt, passes)
    columns = torch.arange(prompt.shape[1], device=prompt.device)
    last = torch.where(mask.bool(), columns, -1).max(1).values
    length = mask.sum(1)
    rows = torch.arange(len(prompt), device=prompt.device)

    def say(tokens: Tensor, said: int) -> Tensor:
        if said == 0:
            states = passes.assemble([thinking.run_pass(n) for n in model.ticks(passes)])
            return model.unembedded(states[rows, last])
        clock, column = model.clock, prompt.shape[1] + said - 1
        clock.loop, clock.columns = passes.n, torch.full_like(tokens[:, :1], column)
        try:
            words = model.embed(tokens[:, -1:])
            positions = (length + said - 1)[:, None]
            states = thinking.run(words, positions, torch.ones_like(positions, dtype=torch.bool))
        finally:
            clock.loop = clock.columns = None
        return model.unembedded(states[:, 0])

    return say
