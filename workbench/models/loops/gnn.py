"""The graph baseline: untied rounds of message passing in place of transformer layers."""

from torch import nn

from workbench.components.message import MessageBlock
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import ModelConfig


class GnnConfig(ModelConfig):
    """Shape of a graph network: `n_layers` rounds, messages `d_mlp` wide.

    Fields of heads, and of the gate of a perceptron, are not used.
    """


@FAMILIES.register("gnn")
class Gnn(DepthModel):
    """`n_layers` rounds of message passing, run once; same perception and readout as the others.

    On tokens that are no graph, every position hears from those that it may look at.
    """

    Config = GnnConfig

    def make_block(self) -> nn.Module:
        return MessageBlock(self.cfg)

    def make_recurrence(self) -> Recurrence:
        return Continue()
