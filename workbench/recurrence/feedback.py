"""What all thought recurrences share: the places where a state becomes the next input."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.products import weights_in_products
from workbench.hooks import HookPoint


class ThoughtRecurrence(nn.Module, ABC):
    """How the last state of a pass becomes the thought that the next pass begins with.

    hook_state_pre  the last layer's state, after the final norm  [batch d_model], once a thought
    hook_thought    what fills the thought's place                [batch d_model], once a thought
    """

    def __init__(self) -> None:
        super().__init__()
        self.hook_state_pre = HookPoint()
        self.hook_thought = HookPoint()

    @abstractmethod
    def forward(
        self, state: Float[Tensor, "batch d_model"], stream: Float[Tensor, "batch d_model"]
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        """The thought, and what is kept beside the sequence for the next one.

        Args:
            state: Of the position before the thought's.
            stream: What the thought before left; zeros for the first.
        """

    def flops(self, n_thoughts: int) -> float:
        """Count the recurrence's own operations for one sequence.

        By default every map `W_*` of its own is applied once a thought: 2 operations a weight.
        """
        return 2.0 * weights_in_products(self) * n_thoughts


class Feedback(ThoughtRecurrence):
    """The state is the next input (CoCoNuT, arXiv 2412.06769, section 3); nothing else is kept."""

    def forward(
        self, state: Float[Tensor, "batch d_model"], stream: Float[Tensor, "batch d_model"]
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        return self.hook_thought(self.hook_state_pre(state)), stream
