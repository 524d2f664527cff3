"""Graph network baseline: untied rounds of message passing instead of transformer layers."""

from torch import nn

from workbench.components.message import MessageBlock
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Continue, Recurrence
from workbench.registries import FAMILIES
from workbench.settings.config import ModelConfig


class GnnConfig(ModelConfig):
    """Config of a graph network: `n_layers` rounds with messages of width `d_mlp`.

    The fields for attention heads and for gated MLPs are not used.
    """


@FAMILIES.register("gnn")
class Gnn(DepthModel):
    """A model of `n_layers` message-passing rounds, run once.

    It has the same perception and readout as the other families. If the tokens are not a graph,
    each position receives messages from the positions that the attention mask allows.
    """

    Config = GnnConfig

    def make_block(self) -> nn.Module:
        return MessageBlock(self.cfg)

    def make_recurrence(self) -> Recurrence:
        return Continue()
