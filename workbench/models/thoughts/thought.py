"""Thought recurrence: a state of the last layer becomes the input at the next position.

One sequence holds question, thoughts and answer. Its passes run every position once; keys and
values carry from pass to pass.
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
    """Shape of a model that thinks between words."""

    latent_token: int  # the token in whose places thoughts stand

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
    """A model whose recurrence runs over thoughts; a family names the recurrence.

    A sequence without thoughts is run as an ordinary transformer runs it.
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
        """What makes a thought of a state."""

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
        """Logits of a batch whose thoughts stand wherever `latent_token` does.

        Args:
            tokens: Token ids; rows may have any number of thoughts, in any places but the first.
            attention_mask: 1 for real tokens, 0 for padding on either side; every row equals that
                row run alone.
            logits_at: Positions of each row, one or several; logits are computed there alone.
            recompute: Run the whole sequence again for every thought, without the cache of keys and
                values: slow, and the same to rounding. A plain hook on a block asks for it too.

        Returns:
            [batch pos d_vocab]; with `logits_at` its shape and d_vocab.

        Raises:
            ValueError: A row begins with a thought, or does not fit n_ctx.
        """
        passes = self.plan(tokens, attention_mask)
        run = self._recomputed if recompute or self.wants_whole else self._by_pass
        return self._read(run(tokens, attention_mask, passes), logits_at)

    @property
    def wants_whole(self) -> bool:
        """Whether some hook expects the whole sequence at once, which the cache does not show."""
        return any(point.wants_whole for point in self._sequence_points)

    def _by_pass(self, tokens: Tensor, mask: Tensor | None, passes: Passes) -> Tensor:
        """The last layer's normed states of a sequence, each position run once."""
        thinking = ThoughtsSoFar(self, tokens, passes)
        return passes.assemble([thinking.run_pass(number) for number in self.ticks(passes)])

    def _recomputed(self, tokens: Tensor, mask: Tensor | None, passes: Passes) -> Tensor:
        """The same, every pass over the whole sequence as far as it is known."""
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
                here = columns == passes.thought_at[:, number, None]  # nowhere in rows that wait
                words = torch.where(here[..., None], thinking.thought[:, None], words)
        return states

    def states(self, words: Float[Tensor, "batch width d_model"], where: Context) -> Tensor:
        """The last layer's states after the final norm, from what the positions start from."""
        state = self.hook_embed(words)
        if self.cfg.positional_embedding_type == "standard":
            state = state + self.hook_pos_embed(self.pos_embed(where.positions, len(words)))
        for block in self.blocks:
            state = block(state, where)
        return cast(Tensor, self.ln_final(state))

    def readout(self, state: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """What a state or a thought says: logits of `recurrence.hook_state_pre` for one.

        A state is read after the final norm, which `hook_state_pre` has passed.
        """
        return self.unembedded(state)

    def decode(self, state: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Logits of a residual stream, through final norm and unembedding; no hook hears it."""
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
        """Append the likeliest token `max_new_tokens` times, with the keys and values so far.

        A thought is never said: `latent_token` is not among the choices.

        Args:
            tokens: A text, or token ids, thoughts and all.
            max_new_tokens: How many tokens to add, in columns after the given ones.
            attention_mask: As for `forward`; a row's new tokens follow its last real one.
            stop_at: A token after which a row repeats it; generation ends when all rows have.
            recompute: As for `forward`.

        Raises:
            ValueError: The result would not fit n_ctx.
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

    # -- what a forward and a generation share

    def ticks(self, passes: Passes) -> Iterator[int]:
        """The numbers of the passes, told to whoever listens."""
        self.clock.valid, self.clock.passes = passes.valid, passes
        try:
            yield from self.clock.ticks(passes.n + 1)
        finally:
            self.clock.columns = None

    def plan(self, tokens: Tensor, attention_mask: Tensor | None) -> Passes:
        """The passes of a batch that the model can hold."""
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
