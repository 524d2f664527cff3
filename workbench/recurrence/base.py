"""The contract of a depth recurrence: how a loop starts, how it ends, what goes to the next.

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
    """What a recurrence may use of its model: the way from a state to tokens and back."""

    @property
    def W_E(self) -> Tensor:
        """Embeddings, [d_vocab d_model]."""

    def decode(self, state: Tensor) -> Tensor:
        """Logits of a state through final norm and unembedding, unheard by hooks."""


class Embedding(NamedTuple):
    """A model's input: token embeddings, and learned positions where the model has them."""

    tokens: Tensor  # [batch pos d_model]
    positions: Tensor | None  # [batch pos d_model]

    def place(self, state: Tensor) -> Tensor:
        """The state with positions added."""
        return state if self.positions is None else state + self.positions


class Passage:
    """One forward pass, as far as a recurrence may look at it.

    Args:
        embedding: The model's input.
        vocabulary: The model, as the way from a state to tokens and back.
        start: The state after the prelude; by default the embedding itself.
    """

    def __init__(
        self, embedding: Embedding, vocabulary: Decoder, start: Tensor | None = None
    ) -> None:
        self.embedding = embedding
        self.vocabulary = vocabulary
        self.start = embedding.place(embedding.tokens) if start is None else start
        """The state at loop 0, [batch pos d_model], for a recurrence that injects it."""
        self.memory: dict[str, Tensor] = {}
        """What the recurrence itself keeps from loop to loop beside the state."""


class Recurrence(nn.Module, ABC):
    """How a loop begins, how it ends, and what is handed to the next.

    hook_state_in    the state as it is handed on            [batch pos d_model], once a loop
    hook_state_pre   what the blocks start from, after begin [batch pos d_model], once a loop
    hook_state_post  the blocks' output, before any mixing   [batch pos d_model], once a loop

    A subclass implements `forward`. It may override `begin` and `finish`, and `flops` where its
    own operations are not one product with each of its maps `W_*` in every loop.
    """

    between: ClassVar[tuple[str, ...]] = ()
    """Names of the places that fire only between two loops: K − 1 times."""
    max_loops: int | None = None
    """The most loops that it can run; None for any number."""
    state_is_all: ClassVar[bool] = True
    """Whether a loop depends on earlier loops through the state alone."""
    halts: ClassVar[bool] = False
    """Whether positions stop by themselves."""
    has_loop_embedding: ClassVar[bool] = False
    """Whether every loop adds a vector of its own, at `recurrence.hook_loop_embed`."""
    has_gate: ClassVar[bool] = False
    """Whether a learned share decides how much of an update is taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_in = HookPoint()
        self.hook_state_pre = HookPoint()
        self.hook_state_post = HookPoint()

    def begin(
        self, state: Float[Tensor, "batch pos d_model"], loop: int, passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute what the blocks start from; the state itself by default.

        Args:
            state: As it was handed on, at `hook_state_in`.
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
        """Compute the loop's output; the blocks' output by default.

        Args:
            start: What the blocks started from, at `hook_state_pre`.
            update: The blocks' output.
            loop: Number of the loop, from 0.
            passage: The forward pass.
        """
        return update

    @abstractmethod
    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute the state that is handed to the next loop.

        Args:
            post: Output of the loop that has ended, at `hook_state_post`.
            passage: The forward pass.
        """

    def flops(self, n_loops: int | float, n_embed: int) -> float:
        """Count the recurrence's own operations for one token of a forward pass.

        By default every map `W_*` of its own is applied once a loop: 2 operations a weight.

        Args:
            n_loops: Loops of the pass, or their mean.
            n_embed: Weights of the embedding, d_vocab·d_model, for a recurrence that decodes; 0 of
                a model without a vocabulary.
        """
        return 2.0 * weights_in_products(self) * n_loops

    @property
    def keeps_more(self) -> str:
        """Why no loop can be run or left out alone, where `state_is_all` is False."""
        kind = "a recurrence that halts" if self.halts else f"{type(self).__name__}"
        return f"{kind} keeps more than its state from loop to loop"

    def loop_embedding(self, loop: int) -> Float[Tensor, " d_model"]:
        """Return the vector that a loop adds, where `has_loop_embedding`."""
        raise NotImplementedError(f"{type(self).__name__} has no loop embedding")


class Continue(Recurrence):
    """The blocks' output is the next loop's state."""

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        return post
