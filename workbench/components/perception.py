"""Perceptions: they turn a question into the loops' start state and set the attention mask.

A task specifies its perception, just as it specifies its readout (`components/readout.py`). Models
of every family work with any of them.
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
    """The module between the token embeddings and the recurrence.

    `takes` lists the inputs that it reads besides tokens and their mask.
    """

    takes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()

    def forward(
        self, words: Float[Tensor, "batch pos d_model"], inputs: Inputs
    ) -> Float[Tensor, "batch pos d_model"]:
        """Compute the input of the recurrence from the token embeddings."""
        return words

    @abstractmethod
    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        """Return the positions and the attention mask.

        Args:
            tokens: A tensor of shape [batch pos]; only its shape and device are used.
            attention_mask: 1 for real tokens, 0 for padding; None if all are real.
            inputs: The model's other inputs.
        """


class Causal(Perception):
    """Causal attention, as in language models."""

    def context(self, tokens: Tensor, attention_mask: Tensor | None, inputs: Inputs) -> Context:
        return context(tokens, attention_mask)


class Whole(Perception):
    """Bidirectional attention after a LayerNorm; the first token is CLS (VCoT, II).

    Position embeddings (rotary or other) are set by the model's config, as for any tokens.
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
    """Sentences in arbitrary order, then a question about two of their names (VCoT, III).

    Works as `Whole`: positions distinguish the words of a sentence, and the data shuffles the
    sentences.
    """


class Nodes(Perception):
    """A directed graph with one token per node: attention follows the edges only (VCoT, I).

    A node attends to itself and to the nodes with an edge to it. A role vector, with initial
    standard deviation .02, is added at the source and target nodes. A LayerNorm follows.

    hook_roles  the role vectors, zero at other nodes  [batch pos d_model]
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
        # A numeric 0/1 mask would be added to the scores instead of masking them
        incoming = edges.bool().transpose(1, 2)[:, None]  # [batch 1 query_pos key_pos]
        itself = torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device)
        return Context(positions, (allowed & incoming) | itself)


PERCEPTIONS: dict[str, type[Perception]] = {
    "causal": Causal,
    "expression": Whole,
    "facts": Facts,
    "nodes": Nodes,
}
