"""The baseline without recurrence: `n_layers` untied layers, run once."""

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import ModelConfig


class TransformerConfig(ModelConfig):
    """Shape of an ordinary transformer."""


@FAMILIES.register("transformer")
class Transformer(DepthModel):
    """A HookedTransformer: one loop over its blocks.

    Its readout after a loop is its only one; asked for more loops it runs its whole stack again.
    """

    Config = TransformerConfig

    def make_recurrence(self) -> Recurrence:
        return Continue()
