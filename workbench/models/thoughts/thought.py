"""Thought recurrence: a last-layer state becomes the input at the next position.

One sequence contains the question, the thoughts and the answer. It is run in passes, each position
in exactly one pass. Keys and values are kept from pass to pass.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import cast

import torch
from jaxtyping import Float, Int
from pydantic import model_validator
from torch import Tensor

from workbench.components.attention import Context
from workbench.hooks.cache import PosSlice, Recorder
from workbench.hooks.pass_recorder import PassRecorder
from workbench.hooks.passes import Passes, plan_passes
from workbench.kinds import THOUGHTS
from workbench.models.base import LatentModel
from workbench.models.inputs import check_range
from workbench.models.thoughts.thinking import ThoughtsSoFar
from workbench.recurrence.feedback import ThoughtRecurrence
from workbench.settings.config import ModelConfig


class ThoughtConfig(ModelConfig):
    """Config of a model that thinks, with thoughts between its words."""

    latent_token: int  # token id that marks the positions of thoughts

    @model_validator(mode="after")
    def _check_thoughts(self) -> "ThoughtConfig":
        if not 0 <= self.latent_token < self.d_vocab:
            raise ValueError(
                f"latent_token={self.latent_token} is no token of a vocabulary of {self.d_vocab}"
            )
        looped = {"n_prelude": 0, "n_coda": 0, "state_norm": "none"}
        for name, only in (looped | {"perception": "causal", "readout": "vocabulary"}).items():
            if getattr(self, name) != only:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is for models that loop; models that think "
                    f"have {only!r}"
                )
        return self


class ThoughtModel(LatentModel):
    """Base class of models with recurrence over thoughts; each family defines `make_recurrence`.

    On a sequence without thoughts, the model is an ordinary transformer.
    """

    kind = THOUGHTS
    cfg: ThoughtConfig
    recurrence: ThoughtRecurrence

    def __init__(self, cfg: ThoughtConfig) -> None:
        super().__init__(cfg)
        self.recurrence = self.make_recurrence()
        self.setup()
        self._between = frozenset(n for n in self.hook_dict if n.startswith("recurrence."))
        self._sequence_points = [p for n, p in self.hook_dict.items() if n not in self._between]

    @abstractmethod
    def make_recurrence(self) -> ThoughtRecurrence:
        """Build the recurrence, which turns a state into a thought."""

    @property
    def looped_places(self) -> frozenset[str]:
        return self._between

    @property
    def between_places(self) -> frozenset[str]:
        return self._between

    def forward(
        self,
        tokens: Int[Tensor, "batch pos"],
        *,
        attention_mask: Int[Tensor, "batch pos"] | None = None,
        logits_at: Int[Tensor, " batch *scored"] | None = None,
        recompute: bool = False,
    ) -> Float[Tensor, "batch *scored d_vocab"]:
        """Compute the logits of a batch; there is a thought at each `latent_token`.

        Args:
            tokens: Token ids; a row may have any number of thoughts, anywhere but at the start.
            attention_mask: 1 for real tokens, 0 for padding on either side; each row gives the
                same result as when it is run alone.
            logits_at: One or several positions of each row; logits are computed only there.
            recompute: Run the whole sequence again for every thought, without the key-value cache.
                This is slow and gives the same result up to rounding. It also happens when a
                plain hook is open on a block.

        Returns:
            [batch pos d_vocab]; with `logits_at`, the shape of `logits_at` followed by d_vocab.

        Raises:
            ValueError: A row begins with a thought or exceeds n_ctx.
        """
        passes = self.plan(tokens, attention_mask)
        run = self._recomputed if recompute or self.wants_whole else self._by_pass
        return self._read(run(tokens, attention_mask, passes), logits_at)

    @property
    def wants_whole(self) -> bool:
        """Whether a hook needs the whole sequence at once, which rules out the key-value cache."""
        return any(point.wants_whole for point in self._sequence_points)

    def _by_pass(self, tokens: Tensor, mask: Tensor | None, passes: Passes) -> Tensor:
        """Return the last layer's normed states of a sequence, running each position once."""
        thinking = ThoughtsSoFar(self, tokens, passes)
        return passes.assemble([thinking.run_pass(number) for number in self.ticks(passes)])

    def _recomputed(self, tokens: Tensor, mask: Tensor | None, passes: Passes) -> Tensor:
        """Return the same states, with every pass over the whole sequence known so far."""
        thinking = ThoughtsSoFar(self, tokens, passes)
        words = self.embed(tokens)
        where = self.perception.context(tokens, mask, {})
        rows = torch.arange(len(tokens), device=tokens.device)
        columns = torch.arange(tokens.shape[1], device=tokens.device)
        states = words
        for number in self.ticks(passes):
            states = self.states(words, where)
            if number < passes.n:
                before = passes.columns[number][rows, passes.ends(number).clamp(min=0)]
                thinking.think(number, states[rows, before.clamp(min=0)])
                here = columns == passes.thought_at[:, number, None]  # False in other rows
                words = torch.where(here[..., None], thinking.thought[:, None], words)
        return states

    def states(self, words: Float[Tensor, "batch width d_model"], where: Context) -> Tensor:
        """Return the last layer's states after the final norm, given the input embeddings."""
        state = self.hook_embed(words)
        if self.cfg.positional_embedding_type == "standard":
            state = state + self.hook_pos_embed(self.pos_embed(where.positions, len(words)))
        for block in self.blocks:
            state = block(state, where)
        return cast(Tensor, self.ln_final(state))

    def readout(self, state: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Return the logits of a state or a thought, such as `recurrence.hook_state_pre`.

        The state must have passed the final norm, as `hook_state_pre` has.
        """
        return self.unembedded(state)

    def decode(self, state: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Return the logits of a residual stream (final norm and unembedding); no hooks fire."""
        return self.unembedded(self.ln_final.plain(state))

    @torch.no_grad()
    def generate(
        self,
        tokens: str | Int[Tensor, "batch pos"],
        max_new_tokens: int = 1,
        *,
        attention_mask: Int[Tensor, "batch pos"] | None = None,
        stop_at: int | None = None,
        recompute: bool = False,
    ) -> Int[Tensor, "batch longer"]:
        """Append the likeliest token `max_new_tokens` times, with a key-value cache.

        `latent_token` is never generated.

        Args:
            tokens: A text, or token ids including the thoughts.
            max_new_tokens: How many tokens to add, in columns after the given ones.
            attention_mask: As for `forward`; a row's new tokens follow its last real token.
            stop_at: Token id that ends a row, which then repeats it; generation stops when all rows
                have ended.
            recompute: As for `forward`.

        Raises:
            ValueError: The result would exceed n_ctx.
        """
        from workbench.models.thoughts.speech import generate

        rows = self.to_tokens(tokens) if isinstance(tokens, str) else tokens
        mask = torch.ones_like(rows) if attention_mask is None else attention_mask
        whole = recompute or self.wants_whole
        return generate(self, rows, max_new_tokens, mask, stop_at, whole)

    def make_recorder(
        self, device: str | torch.device | None, remove_batch_dim: bool, pos_slice: PosSlice
    ) -> Recorder:
        return PassRecorder(self.clock, self._between, device, remove_batch_dim, pos_slice)

    def _read(self, states: Tensor, logits_at: Tensor | None) -> Tensor:
        if logits_at is None:
            return self.unembed_hooked(states)
        rows = torch.arange(len(states), device=states.device)
        rows = rows.view(-1, *[1] * (logits_at.ndim - 1))
        return self.unembed_hooked(states[rows, logits_at])

    # -- shared by forward passes and generation

    def ticks(self, passes: Passes) -> Iterator[int]:
        """Yield the pass numbers, and set the clock that hooks read."""
        self.clock.valid, self.clock.passes = passes.valid, passes
        try:
            yield from self.clock.ticks(passes.n + 1)
        finally:
            self.clock.columns = None

    def plan(self, tokens: Tensor, attention_mask: Tensor | None) -> Passes:
        """Split a batch into passes.

        Raises:
            ValueError: The batch is empty, a token id is out of range, a row begins with a thought,
                or a row exceeds n_ctx.
        """
        n_batch, n_pos = tokens.shape
        if not n_pos or not n_batch:
            raise ValueError(f"tokens of shape [{n_batch} {n_pos}] hold nothing to run")
        check_range("tokens", tokens, self.cfg.d_vocab, "words")
        passes = plan_passes(tokens, attention_mask, self.cfg.latent_token)
        longest = int(passes.positions.max()) + 1
        if longest > self.cfg.n_ctx:
            row = int(passes.positions.max(1).values.argmax())
            raise ValueError(
                f"row {row} has {longest} positions, {int(passes.n_thoughts[row])} of them "
                f"thoughts; the model's n_ctx is {self.cfg.n_ctx}"
            )
        return passes
