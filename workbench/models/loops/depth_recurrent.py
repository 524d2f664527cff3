"""VCoT's depth-recurrent transformer (arXiv 2603.21676): looped, with a gated state update."""

from pydantic import model_validator

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Recurrence
from workbench.recurrence.update import Beyond, GatedUpdate, LoopEmbed, UpdateGate
from workbench.registries import FAMILIES
from workbench.settings.config import ConfigError, LoopedConfig


class LoopTableConfig(LoopedConfig):
    """Config of a looped model with a learned embedding for each loop."""

    max_loops: int = 20  # rows of the loop embedding, so the maximum number of loops
    trained_loops: int | None = None  # maximum in training; a recipe fills it in
    # Embedding of loops beyond those: their own row, the last trained row, or zero
    loops_beyond: Beyond = "own"

    @model_validator(mode="after")
    def _check_table(self) -> "LoopTableConfig":
        if self.n_loops > self.max_loops:
            raise ValueError(
                f"n_loops={self.n_loops} is more than the loop embedding has rows for "
                f"(max_loops={self.max_loops})"
            )
        if self.trained_loops is not None and not 1 <= self.trained_loops <= self.max_loops:
            raise ValueError(
                f"trained_loops={self.trained_loops} must lie between 1 and "
                f"max_loops={self.max_loops}"
            )
        return self

    def trained_with(self, loops: str | list[int]) -> "LoopTableConfig":
        """Return the config with `trained_loops` filled in, unless it is already set.

        Raises:
            ConfigError: Training runs more loops than the loop embedding has rows.
        """
        most = max(loops) if isinstance(loops, list) else self.n_loops
        if most > self.max_loops:
            raise ConfigError(
                f"training.loops={loops} is more than the loop embedding has rows for "
                f"(model.max_loops={self.max_loops})"
            )
        return self if self.trained_loops else self.model_copy(update={"trained_loops": most})

    def make_loop_embed(self) -> LoopEmbed:
        """Build the loop embedding that these fields specify."""
        return LoopEmbed(self.d_model, self.max_loops, self.trained_loops, self.loops_beyond)


class DepthRecurrentConfig(LoopTableConfig):
    """Config of a depth-recurrent transformer."""

    gate_bias: float = -2.0  # initial bias: σ(−2) = .12 is the share of the new state


@FAMILIES.register("depth_recurrent")
class DepthRecurrent(DepthModel):
    """A looped model with h ← z·blocks(h + e[loop]) + (1 − z)·h; the gate z starts at .12."""

    Config = DepthRecurrentConfig
    cfg: DepthRecurrentConfig

    def make_recurrence(self) -> Recurrence:
        gate = UpdateGate(self.cfg.d_model, self.cfg.gate_bias)
        return GatedUpdate(self.cfg.make_loop_embed(), gate)
