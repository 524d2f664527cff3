"""The interface of depth recurrences: how a loop starts and ends, and what the next loop gets.

in₀ = prelude(embedding)
preᵣ = begin(inᵣ);  postᵣ = finish(preᵣ, blocks(preᵣ));  inᵣ₊₁ = forward(postᵣ)
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.products import weights_in_products
from workbench.hooks import HookPoint


@runtime_checkable
class Decoder(Protocol):
    """The part of the model that a recurrence may use: from a state to tokens and back."""

    @property
    def W_E(self) -> Tensor:
        """The token embeddings, [d_vocab d_model]."""

    def decode(self, state: Tensor) -> Tensor:
        """Return the logits of a state (final norm and unembedding); no hooks fire."""


class Embedding(NamedTuple):
    """A model's input: token embeddings, and learned position embeddings if the model has them."""

    tokens: Tensor  # [batch pos d_model]
    positions: Tensor | None  # [batch pos d_model]

    def place(self, state: Tensor) -> Tensor:
        """Return the state with the position embeddings added."""
        return state if self.positions is None else state + self.positions


class Passage:
    """The data of one forward pass that a recurrence may use.

    Args:
        embedding: The model's input.
        vocabulary: The model, which decodes states to tokens and embeds tokens.
        start: The state after the prelude; by default the embedding itself.
    """

    def __init__(
        self, embedding: Embedding, vocabulary: Decoder, start: Tensor | None = None
    ) -> None:
        self.embedding = embedding
        self.vocabulary = vocabulary
        self.start = embedding.place(embedding.tokens) if start is None else start
        """The state at loop 0, [batch pos d_model], for recurrences that inject it."""
        self.memory: dict[str, Tensor] = {}
        """Anything that the recurrence carries from loop to loop besides the state."""


class Recurrence(nn.Module, ABC):
    """Base class of depth recurrences: how a loop begins and ends, and what the next loop gets.

    hook_state_in    the state passed to the loop            [batch pos d_model], once per loop
    hook_state_pre   the blocks' input, after `begin`        [batch pos d_model], once per loop
    hook_state_post  the blocks' output, before any mixing   [batch pos d_model], once per loop

    A subclass implements `forward`. It may override `begin` and `finish`. It must override `flops`
    if its own operations are not one product with each of its weights `W_*` in every loop.
    """

    between: ClassVar[tuple[str, ...]] = ()
    """Names of the hooks that fire only between two loops: K − 1 times."""
    max_loops: int | None = None
    """The largest number of loops that it can run; None for no limit."""
    state_is_all: ClassVar[bool] = True
    """Whether a loop depends on earlier loops only through the state."""
    halts: ClassVar[bool] = False
    """Whether each position can halt on its own."""
    has_loop_embedding: ClassVar[bool] = False
    """Whether every loop adds its own vector, at `recurrence.hook_loop_embed`."""
    has_gate: ClassVar[bool] = False
    """Whether a learned gate sets how much of an update is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_in = HookPoint()
        self.hook_state_pre = HookPoint()
        self.hook_state_post = HookPoint()

    def begin(
        self, state: Float[Tensor, "batch pos d_model"], loop: int, passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute the blocks' input; by default the state itself.

        Args:
            state: The state passed to the loop, at `hook_state_in`.
            loop: Number of the loop, from 0.
            passage: The forward pass.
        """
        return state

    def finish(
        self,
        start: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        loop: int,
        passage: Passage,
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute the loop's output; by default the blocks' output.

        Args:
            start: The blocks' input, at `hook_state_pre`.
            update: The blocks' output.
            loop: Number of the loop, from 0.
            passage: The forward pass.
        """
        return update

    @abstractmethod
    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute the state that is passed to the next loop.

        Args:
            post: The output of the loop that has just ended, at `hook_state_post`.
            passage: The forward pass.
        """

    def flops(self, n_loops: int | float, n_embed: int) -> float:
        """Count the recurrence's own operations for one token of a forward pass.

        By default each of its weights `W_*` is applied once per loop: 2 operations per weight.

        Args:
            n_loops: The number of loops of the pass, or its mean.
            n_embed: The number of embedding weights, d_vocab·d_model, for recurrences that decode;
                0 for a model without a vocabulary.
        """
        return 2.0 * weights_in_products(self) * n_loops

    @property
    def keeps_more(self) -> str:
        """The reason why single loops cannot be run or skipped, if `state_is_all` is False."""
        kind = "a recurrence that halts" if self.halts else f"{type(self).__name__}"
        return f"{kind} keeps more than its state from loop to loop"

    def loop_embedding(self, loop: int) -> Float[Tensor, " d_model"]:
        """Return the vector that a loop adds, if `has_loop_embedding` is True."""
        raise NotImplementedError(f"{type(self).__name__} has no loop embedding")


class Continue(Recurrence):
    """The plain recurrence: the blocks' output is the next loop's state."""

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        return post
