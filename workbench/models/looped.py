"""The plain looped transformer: the state goes on unchanged."""

from workbench.config import LoopedConfig
from workbench.models.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence


class Looped(DepthModel):
    """`n_layers` blocks run `n_loops` times, each loop starting where the last one ended."""

    Config = LoopedConfig
    cfg: LoopedConfig

    @property
    def n_loops(self) -> int:
        return self.cfg.n_loops

    def make_recurrence(self) -> Recurrence:
        return Continue()
