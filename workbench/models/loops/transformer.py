"""Baseline without recurrence: `n_layers` untied layers, run once."""

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import ModelConfig


class TransformerConfig(ModelConfig):
    """Config of an ordinary transformer."""


@FAMILIES.register("transformer")
class Transformer(DepthModel):
    """An ordinary transformer, like HookedTransformer: one loop over its blocks.

    By default there is one loop, so one readout. With a larger `n_loops` it runs its whole stack
    again.
    """

    Config = TransformerConfig

    def make_recurrence(self) -> Recurrence:
        return Continue()
