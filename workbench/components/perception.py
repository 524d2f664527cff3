"""Perception: how a question becomes the state that the loops start from, and who may look at whom.

A task names its perception, as it names its readout (`components/readout.py`); models of every
family take any of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.attention import Context, context, real_positions
from workbench.components.norm import LayerNorm
from workbench.hooks import HookPoint
from workbench.settings.config import ModelConfig

Inputs = Mapping[str, Tensor]


class Perception(nn.Module, ABC):
    """What stands between token embeddings and the recurrence.

    `takes` names the inputs it reads beside tokens and their mask.
    """

    takes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()

    def forward(
        self, words: Float[Tensor, "batch pos d_model"], inputs: Inputs
    ) -> Float[Tensor, "batch pos d_model"]:
        """The input of the recurrence, from the embeddings of the tokens."""
        return words

    @abstractmethod
    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        """Positions, and who may look at whom.

        Args:
            tokens: Anything of shape [batch pos]; only shape and device are looked at.
            attention_mask: 1 for real tokens, 0 for padding; None if all are real.
            inputs: Whatever else the model was given.
        """


class Causal(Perception):
    """Tokens read from left to right, as language models read them."""

    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        return context(tokens, attention_mask)


class Whole(Perception):
    """Tokens that all see each other, under a LayerNorm; the first of them is CLS (VCoT, II).

    Rotary or other positions are the model's own, as for any tokens.
    """

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__(cfg)
        self.ln = LayerNorm(cfg)

    def forward(
        self, words: Float[Tensor, "batch pos d_model"], inputs: Inputs
    ) -> Float[Tensor, "batch pos d_model"]:
        return self.ln(words)

    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        positions, allowed = real_positions(tokens, attention_mask)
        return Context(positions, allowed)


class Facts(Whole):
    """Sentences in an order that means nothing, then a question on two of their names (VCoT, III).

    As `Whole`: positions tell words of a sentence apart, and the data shuffles the sentences.
    """


class Nodes(Perception):
    """A directed graph, a token for each node: attention runs along edges alone (VCoT, I).

    A node looks at the nodes with an edge to it, and at itself. The two nodes that are asked about
    carry a vector of their role, standard deviation .02 at the start; LayerNorm follows.

    hook_roles  the roles' vectors, zero at other nodes  [batch pos d_model]
    """

    takes: ClassVar[tuple[str, ...]] = ("adjacency", "source_at", "target_at")

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__(cfg)
        self.W_role = nn.Parameter(torch.randn(2, cfg.d_model) * 0.02)  # source, target
        self.ln = LayerNorm(cfg)
        self.hook_roles = HookPoint()

    def forward(
        self, words: Float[Tensor, "batch pos d_model"], inputs: Inputs
    ) -> Float[Tensor, "batch pos d_model"]:
        columns = torch.arange(words.shape[1], device=words.device)
        is_source, is_target = (
            (columns == inputs[end][:, None])[..., None].to(words.dtype)
            for end in ("source_at", "target_at")
        )
        roles = is_source * self.W_role[0] + is_target * self.W_role[1]
        return self.ln(words + self.hook_roles(roles))

    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        positions, allowed = real_positions(tokens, attention_mask)
        n_batch, n_pos = tokens.shape
        edges = inputs["adjacency"]
        if edges.shape != (n_batch, n_pos, n_pos):
            raise ValueError(
                f"adjacency of shape {list(edges.shape)} does not fit {n_batch} graphs of "
                f"{n_pos} nodes"
            )
        # As numbers 0 and 1 the edges would be a bias on scores, and no mask
        incoming = edges.bool().transpose(1, 2)[:, None]  # [batch 1 query_pos key_pos]
        itself = torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device)
        return Context(positions, (allowed & incoming) | itself)


PERCEPTIONS: dict[str, type[Perception]] = {
    "causal": Causal,
    "expression": Whole,
    "facts": Facts,
    "nodes": Nodes,
}
