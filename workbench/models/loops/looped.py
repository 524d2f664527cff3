"""The plain looped transformer: the state goes on unchanged."""

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import LoopedConfig


@FAMILIES.register("looped")
class Looped(DepthModel):
    """`n_layers` blocks run `n_loops` times, each loop starting where the last one ended."""

    Config = LoopedConfig
    cfg: LoopedConfig

    def make_recurrence(self) -> Recurrence:
        return Continue()
