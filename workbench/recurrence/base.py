"""What all depth recurrences share: the places where a loop starts and ends."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from workbench.hooks import HookPoint


@runtime_checkable
class Vocabulary(Protocol):
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


@dataclass
class Passage:
    """One forward pass, as far as a recurrence may look at it."""

    embedding: Embedding
    vocabulary: Vocabulary
    memory: dict[str, Tensor] = field(default_factory=dict)
    """What the recurrence itself keeps from loop to loop beside the state."""


class Recurrence(nn.Module, ABC):
    """How a loop begins, how it ends, and what passes to the next.

    hook_state_pre   what the blocks of a loop start from    [batch pos d_model], once a loop
    hook_state_post  what the loop says, before any mixing   [batch pos d_model], once a loop

    `between` names the places that fire only where one loop passes to another: K − 1 times.
    """

    between: ClassVar[tuple[str, ...]] = ()
    max_loops: int | None = None  # that it can run
    state_is_all: ClassVar[bool] = True  # that a loop takes over from the one before

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_pre = HookPoint()
        self.hook_state_post = HookPoint()

    def begin(
        self, state: Float[Tensor, "batch pos d_model"], loop: int, passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """What the blocks start from."""
        return state

    def finish(
        self,
        start: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        loop: int,
        passage: Passage,
    ) -> Float[Tensor, "batch pos d_model"]:
        """What the loop says, from what its blocks started from and what they left."""
        return update

    @abstractmethod
    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        """The state that the next loop starts from.

        Args:
            post: What the loop that has ended says.
            passage: The forward pass that it is part of.
        """


class Continue(Recurrence):
    """What a loop says goes on to the next."""

    def forward(
        self, post: Float[Tensor, "batch pos d_model"], passage: Passage
    ) -> Float[Tensor, "batch pos d_model"]:
        return post
