"""Depth recurrence: the same blocks run repeatedly on the same positions.

state ← prelude(embedding);  state ← recurrence(state, blocks(state)) × K;  logits ← readout(state)
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.components.attention import Context
from workbench.components.norm import rms_normalize
from workbench.kinds import LOOPS
from workbench.models.base import LatentModel
from workbench.models.inputs import check_range, need
from workbench.recurrence.base import Embedding, Passage, Recurrence
from workbench.settings.config import ModelConfig, nearest


class DepthModel(LatentModel):
    """Base class of models with recurrence over depth; each family defines `make_recurrence`."""

    kind = LOOPS

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__(cfg)
        self.recurrence = self.make_recurrence()
        self.setup()
        self._looped_places = frozenset(
            name for name in self.hook_dict if name.startswith(("blocks.", "recurrence."))
        )
        self._between_places = self._looped_places & frozenset(self.recurrence.between)

    @property
    def n_loops(self) -> int:
        """Default number of loops in a forward pass: `cfg.n_loops`, or 1 if the config has none."""
        return int(getattr(self.cfg, "n_loops", 1))

    @property
    def max_loops(self) -> int | None:
        """Maximum number of loops in a forward pass; None if there is no limit."""
        return self.recurrence.max_loops

    @abstractmethod
    def make_recurrence(self) -> Recurrence:
        """Build the recurrence, which turns one loop's output into the next loop's input."""

    @property
    def looped_places(self) -> frozenset[str]:
        return self._looped_places

    @property
    def between_places(self) -> frozenset[str]:
        return self._between_places

    def forward(
        self,
        tokens: Int[Tensor, "batch pos"],
        *,
        attention_mask: Int[Tensor, "batch pos"] | None = None,
        n_loops: int | Int[Tensor, " batch"] | None = None,
        logits_at: Int[Tensor, " batch"] | None = None,
        every_loop: bool = False,
        **inputs: Tensor,
    ) -> Float[Tensor, "*axes d_out"]:
        """Compute the logits of a batch of questions.

        Args:
            tokens: Token ids.
            attention_mask: 1 for real tokens, 0 for padding on either side; each row gives the
                same result as when it is run alone.
            n_loops: Number of loops: one number, or one for each row; a row that has finished
                keeps its last state.
            logits_at: One position for each row; the logits are computed only there and have no
                position axis.
            every_loop: Return the logits after every loop, with the loop as the first axis.
            **inputs: Further inputs of the perception and the readout, such as edges and the
                nodes that a question is about.

        Returns:
            [batch pos d_vocab]; [batch d_vocab] with `logits_at`; [batch 2] for a yes/no readout.
            With `every_loop` the loop is the first axis.

        Raises:
            ValueError: There are no positions or more than n_ctx; there are fewer loops than 1 or
                more than the loop embedding has rows; a token or a position that a question is
                about is out of range; or an input is missing.
            TypeError: An input is unknown.
        """
        self._check(tokens, inputs)
        loops = self._loops_by_row(n_loops, len(tokens))
        where = self.perception.context(tokens, attention_mask, inputs)
        embedding = self._embed(tokens, where, inputs)
        passage = self._passage(embedding, where)
        # Keep only the states that are read out; without gradients, earlier ones can be freed
        said = self._run_loops(passage, loops, where)
        posts = deque(said, maxlen=None if every_loop else 1)
        read = [
            self.readout(post, attention_mask=attention_mask, logits_at=logits_at, **inputs)
            for post in posts
        ]
        return torch.stack(read) if every_loop else read[-1]

    def _passage(self, embedding: Embedding, where: Context) -> Passage:
        """Return the `Passage` of a forward pass, with the prelude run and no loop yet."""
        state = embedding.place(embedding.tokens)
        for block in self.prelude:
            state = block(state, where)
        return Passage(embedding, self, state)

    def _run_loops(self, passage: Passage, loops: int | Tensor, where: Context) -> Iterator[Tensor]:
        """Yield the output of each loop, before the recurrence turns it into the next input."""
        recurrence, state = self.recurrence, passage.start
        n_loops = loops if isinstance(loops, int) else int(loops.max())
        self._note_valid(loops, n_loops, len(state))
        last: Tensor | None = None
        for loop in self.clock.ticks(n_loops):
            post = self._one_loop(state, loop, passage, where)
            if last is not None and not isinstance(loops, int):
                post = torch.where((loops > loop)[:, None, None], post, last)
            last = recurrence.hook_state_post(post)
            if loop + 1 < n_loops:
                state = recurrence(last, passage)
            yield last

    def _one_loop(self, state: Tensor, loop: int, passage: Passage, where: Context) -> Tensor:
        """Run one loop from its input state and return its output."""
        if self.cfg.state_norm == "rms":
            state = rms_normalize(state)
        state = self.recurrence.hook_state_in(state)
        start = self.recurrence.hook_state_pre(self.recurrence.begin(state, loop, passage))
        update = start
        for block in self.blocks:
            update = block(update, where)
        return self.recurrence.finish(start, update, loop, passage)

    def iterate(
        self,
        said: Float[Tensor, "batch pos d_model"],
        loop: int,
        *,
        tokens: Int[Tensor, "batch pos"],
        attention_mask: Int[Tensor, "batch pos"] | None = None,
        **inputs: Tensor,
    ) -> Float[Tensor, "batch pos d_model"]:
        """Run one loop from the previous loop's output, so that the recurrence is a map.

        Args:
            said: Output of the previous loop, at `recurrence.hook_state_post`.
            loop: Index of the loop to run, from 0; it selects the loop embedding.
            tokens: As for `forward`.
            attention_mask: As for `forward`.
            **inputs: As for `forward`.

        Raises:
            ValueError: The recurrence carries more than its state from loop to loop, or the index
                is negative or beyond the last loop that the model can run.
        """
        self._check(tokens, inputs)
        if loop < 0:
            raise ValueError(f"loop={loop} must be at least 0")
        self._loops_by_row(loop + 1, len(tokens))
        if not self.recurrence.state_is_all:
            raise ValueError(f"iterate: {self.recurrence.keeps_more}")
        where = self.perception.context(tokens, attention_mask, inputs)
        passage = self._passage(self._embed(tokens, where, inputs), where)
        self._note_valid(loop + 1, loop + 1, len(tokens))
        self.clock.loop = loop
        try:
            state = self.recurrence(said, passage)
            post = self._one_loop(state, loop, passage, where)
            return self.recurrence.hook_state_post(post)
        finally:
            self.clock.loop = None

    def readout(
        self,
        state: Float[Tensor, "batch pos d_model"],
        *,
        tokens: Int[Tensor, "batch pos"] | None = None,
        attention_mask: Int[Tensor, "batch pos"] | None = None,
        logits_at: Int[Tensor, " batch"] | None = None,
        **inputs: Tensor,
    ) -> Float[Tensor, "*axes d_out"]:
        """Compute the logits of a loop's `recurrence.hook_state_post`, through the coda if any.

        Args:
            state: Output state of a loop.
            tokens: Ignored; accepted so that `readout(state, **batch.inputs)` works.
            attention_mask: As for `forward`; used only by a coda.
            logits_at: As for `forward`.
            **inputs: As for `forward`.

        Raises:
            ValueError: An input that the readout needs is missing.
        """
        if len(self.coda):
            shape = torch.zeros(state.shape[:2], dtype=torch.long, device=state.device)
            where = self.perception.context(shape, attention_mask, inputs)
            for block in self.coda:
                state = block(state, where)
        if self.head is not None:
            need(self.head.takes, inputs)
            at = {} if logits_at is None else {"logits_at": logits_at}
            return cast(Tensor, self.head(state, inputs | at))
        if logits_at is None:
            return self.unembed_hooked(self.ln_final(state))
        rows = torch.arange(len(state), device=state.device)
        return self.unembed_hooked(self.ln_final(state[rows, logits_at][:, None]))[:, 0]

    def decode(self, state: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Return the logits of a state (final norm and unembedding); no hooks fire.

        These are the logits that the readout gives in a model without a coda. Φ uses them between
        loops.

        Raises:
            ValueError: The model has a yes/no readout.
        """
        self.check_vocabulary()
        return self.unembedded(self.ln_final.plain(state))

    def _embed(self, tokens: Tensor, where: Context, inputs: dict[str, Tensor]) -> Embedding:
        words = self.perception(self.hook_embed(self.embed(tokens)), inputs)
        if self.cfg.positional_embedding_type != "standard":
            return Embedding(words, None)
        return Embedding(words, self.hook_pos_embed(self.pos_embed(where.positions, len(tokens))))

    def _note_valid(self, loops: int | Tensor, n_loops: int, n_batch: int) -> None:
        if isinstance(loops, int):
            self.clock.valid = torch.ones(n_loops, n_batch, dtype=torch.bool, device=self.device)
        else:
            self.clock.valid = torch.arange(n_loops, device=loops.device)[:, None] < loops

    def _loops_by_row(self, n_loops: int | Tensor | None, n_batch: int) -> int | Tensor:
        loops = self.n_loops if n_loops is None else n_loops
        if isinstance(loops, Tensor) and loops.shape != (n_batch,):
            raise ValueError(
                f"n_loops of shape {list(loops.shape)} must hold a number for each of the "
                f"{n_batch} rows"
            )
        if isinstance(loops, Tensor) and bool((loops == loops[0]).all()):
            loops = int(loops[0])
        fewest = loops if isinstance(loops, int) else int(loops.min())
        most = loops if isinstance(loops, int) else int(loops.max())
        if fewest < 1:
            raise ValueError(f"n_loops={fewest} must be at least 1")
        table = self.recurrence.max_loops
        if table is not None and most > table:
            what = "the loop embedding has rows for"
            if not self.recurrence.has_loop_embedding:
                what = f"{type(self.recurrence).__name__} can run"
            raise ValueError(f"n_loops={most} is more than {what} (max_loops={table})")
        return loops

    def _check(self, tokens: Tensor, inputs: dict[str, Tensor]) -> None:
        n_batch, n_pos = tokens.shape
        if not n_pos or not n_batch:
            raise ValueError(f"tokens of shape [{n_batch} {n_pos}] hold nothing to run")
        if n_pos > self.cfg.n_ctx:
            raise ValueError(f"{n_pos} positions do not fit the model's n_ctx={self.cfg.n_ctx}")
        wanted = set(self.perception.takes)
        if self.head is not None:
            wanted |= set(self.head.takes)
        need(wanted, inputs)
        for name in inputs.keys() - wanted:
            if name not in ("source_at", "target_at"):  # batches may have these unused
                raise TypeError(f"forward takes no input {name!r}; {nearest(name, wanted)}")
        check_range("tokens", tokens, self.cfg.d_vocab, "words")
        for name in inputs.keys() & {"source_at", "target_at"}:
            check_range(name, inputs[name], n_pos, "positions")

    @torch.no_grad()
    def generate(
        self, tokens: str | Int[Tensor, "batch pos"], max_new_tokens: int = 1, **inputs: int
    ) -> Int[Tensor, "batch longer"]:
        """Append the likeliest token `max_new_tokens` times, each with a full forward pass.

        Args:
            tokens: A question, or token ids.
            max_new_tokens: How many tokens to add.
            **inputs: `n_loops`, as for `forward`.

        Raises:
            ValueError: The result would exceed n_ctx, or the model has a yes/no readout.
        """
        self.check_vocabulary()
        sequence = self.to_tokens(tokens) if isinstance(tokens, str) else tokens
        for _ in range(max_new_tokens):
            logits = self(sequence, **inputs)[:, -1]
            sequence = torch.cat((sequence, logits.argmax(-1, keepdim=True)), dim=1)
        return sequence
