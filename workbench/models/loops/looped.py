"""The plain looped transformer: each loop's output is the next loop's input, unchanged."""

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import LoopedConfig


@FAMILIES.register("looped")
class Looped(DepthModel):
    """A model whose `n_layers` blocks run `n_loops` times, each loop on the previous output."""

    Config = LoopedConfig
    cfg: LoopedConfig

    def make_recurrence(self) -> Recurrence:
        return Continue()
