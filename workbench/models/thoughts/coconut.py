"""CoCoNuT (arXiv 2412.06769): the last hidden state is the next input."""

from workbench.models.thoughts.thought import ThoughtConfig, ThoughtModel
from workbench.recurrence.feedback import Feedback, ThoughtRecurrence
from workbench.registries import FAMILIES


class CoconutConfig(ThoughtConfig):
    """Config of a CoCoNuT model."""


@FAMILIES.register("coconut")
class Coconut(ThoughtModel):
    """A transformer whose thoughts are its last hidden states; the recurrence has no parameters."""

    Config = CoconutConfig
    cfg: CoconutConfig

    def make_recurrence(self) -> ThoughtRecurrence:
        return Feedback()
