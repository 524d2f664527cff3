"""What all depth recurrences share: the places where a loop starts and ends."""

from abc import ABC, abstractmethod
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


class Recurrence(nn.Module, ABC):
    """The step from one loop to the next.

    hook_state_pre   what the blocks of a loop start from    [batch pos d_model], once a loop
    hook_state_post  what they leave, before any mixing      [batch pos d_model], once a loop

    `between` names the places that fire only where one loop passes to another: K − 1 times.
    """

    between: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_pre = HookPoint()
        self.hook_state_post = HookPoint()

    @abstractmethod
    def forward(
        self,
        state: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        embedding: Embedding,
        vocabulary: Vocabulary,
    ) -> Float[Tensor, "batch pos d_model"]:
        """The state that the next loop starts from.

        Args:
            state: What the loop that has ended started from.
            update: What its blocks left.
            embedding: The model's input, tokens and positions apart.
            vocabulary: The model, as far as a recurrence may use it.
        """


class Continue(Recurrence):
    """The state goes on as the blocks left it."""

    def forward(
        self,
        state: Float[Tensor, "batch pos d_model"],
        update: Float[Tensor, "batch pos d_model"],
        embedding: Embedding,
        vocabulary: Vocabulary,
    ) -> Float[Tensor, "batch pos d_model"]:
        return update
