"""The interface of thought recurrences: how a state becomes the next input."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.products import weights_in_products
from workbench.hooks import HookPoint


class ThoughtRecurrence(nn.Module, ABC):
    """Base class of thought recurrences: a pass's last state becomes the next pass's first input.

    hook_state_pre  the last layer's state, after the final norm  [batch d_model], once per thought
    hook_thought    the thought, used as the next input           [batch d_model], once per thought
    """

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_pre = HookPoint()
        self.hook_thought = HookPoint()

    @abstractmethod
    def forward(
        self, state: Float[Tensor, "batch d_model"], stream: Float[Tensor, "batch d_model"]
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        """Return the thought, and the stream that is carried to the next thought.

        Args:
            state: The state at the position before the thought.
            stream: The stream from the previous thought; zeros for the first thought.
        """

    def flops(self, n_thoughts: int) -> float:
        """Count the recurrence's own operations for one sequence.

        By default each of its weights `W_*` is applied once per thought: 2 operations per weight.
        """
        return 2.0 * weights_in_products(self) * n_thoughts


class Feedback(ThoughtRecurrence):
    """CoCoNuT's recurrence (arXiv 2412.06769, section 3): the state is the next input.

    The stream is passed through unchanged.
    """

    def forward(
        self, state: Float[Tensor, "batch d_model"], stream: Float[Tensor, "batch d_model"]
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        return self.hook_thought(self.hook_state_pre(state)), stream
