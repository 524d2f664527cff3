"""Weights and words under the names that TransformerLens gives them."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from workbench.components.embed import Embed, PosEmbed, TiedUnembed, Unembed
from workbench.components.readout import YesNo
from workbench.config import ModelConfig
from workbench.hooks import HookedRootModule
from workbench.tokenizer import Vocabulary


class NamedModel(HookedRootModule):
    """A model whose parts are where TransformerLens has them."""

    cfg: ModelConfig
    tokenizer: Vocabulary | None
    reader: Callable[[str], dict[str, Tensor]] | None
    embed: Embed
    pos_embed: PosEmbed
    blocks: nn.ModuleList
    unembed: Unembed | TiedUnembed
    head: YesNo | None

    @property
    def device(self) -> torch.device:
        return self.embed.W_E.device

    @property
    def W_E(self) -> Float[Tensor, "d_vocab d_model"]:
        return self.embed.W_E

    @property
    def W_pos(self) -> Float[Tensor, "n_ctx d_model"]:
        return self.pos_embed.W_pos

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:
        """The unembedding; of a tied model W_E^T with the readout's scale in it."""
        self.check_vocabulary()
        if isinstance(self.unembed, Unembed):
            return self.unembed.W_U
        return self.embed.W_E.T * self.unembed.scale

    @property
    def b_U(self) -> Float[Tensor, " d_vocab"]:
        self.check_vocabulary()
        if isinstance(self.unembed, Unembed):
            return self.unembed.b_U
        return self.embed.W_E.new_zeros(self.cfg.d_vocab)

    @property
    def W_Q(self) -> Float[Tensor, "layer head d_model d_head"]:
        return self._stack("attn", "W_Q")

    @property
    def W_K(self) -> Float[Tensor, "layer head d_model d_head"]:
        return self._stack("attn", "W_K")

    @property
    def W_V(self) -> Float[Tensor, "layer head d_model d_head"]:
        return self._stack("attn", "W_V")

    @property
    def W_O(self) -> Float[Tensor, "layer head d_head d_model"]:
        return self._stack("attn", "W_O")

    @property
    def W_gate(self) -> Float[Tensor, "layer d_model d_mlp"]:
        """Of gated perceptrons."""
        return self._stack("mlp", "W_gate")

    @property
    def W_in(self) -> Float[Tensor, "layer d_model d_mlp"]:
        return self._stack("mlp", "W_in")

    @property
    def W_out(self) -> Float[Tensor, "layer d_mlp d_model"]:
        return self._stack("mlp", "W_out")

    def _stack(self, part: str, weight: str) -> Tensor:
        return torch.stack([getattr(getattr(block, part), weight) for block in self.blocks])

    def check_vocabulary(self) -> None:
        """Refuse whatever needs the readout to be a vocabulary.

        Raises:
            ValueError: This model's readout answers yes or no.
        """
        if self.head is not None:
            raise ValueError(
                f"this model answers yes or no by its readout {self.cfg.readout!r}; its states "
                "do not decode into words"
            )

    def to_tokens(self, text: str | list[str]) -> Int[Tensor, "batch pos"]:
        """Token ids of one question or several of equal length.

        Raises:
            ValueError: A word is unknown, a text is empty, lengths differ, or the model has no
                vocabulary.
        """
        rows = [self._words().encode(line) for line in ([text] if isinstance(text, str) else text)]
        if len({len(row) for row in rows}) > 1:
            lengths = ", ".join(str(len(row)) for row in rows)
            raise ValueError(
                f"texts of {lengths} words do not fit one tensor; batch them by length"
            )
        return torch.tensor(rows, device=self.device)

    def ask(self, question: str) -> dict[str, Tensor]:
        """Inputs of one typed question, as the model's task reads it: `model(**model.ask(text))`.

        A model that was given a vocabulary alone takes the words for the whole question.

        Raises:
            ValueError: The text is no question of the task, or the model has no vocabulary.
        """
        if self.reader is None:
            return {"tokens": self.to_tokens(question)}
        return {name: tensor.to(self.device) for name, tensor in self.reader(question).items()}

    def to_string(self, tokens: Tensor | Sequence[int]) -> str | list[str]:
        """The text of token ids; a list of texts for a batch."""
        ids = torch.as_tensor(tokens)
        if ids.ndim > 1:
            return [cast(str, self.to_string(row)) for row in ids]
        return self._words().decode(ids.flatten().tolist())

    def to_str_tokens(self, tokens: str | Tensor | Sequence[int]) -> list[str]:
        """Words of one text or one row of token ids."""
        if isinstance(tokens, str):
            tokens = self._words().encode(tokens)
        return [self._words().words[int(token)] for token in torch.as_tensor(tokens).flatten()]

    def to_single_token(self, word: str) -> int:
        """The id of one word.

        Raises:
            ValueError: The text is empty, unknown, or several tokens.
        """
        tokens = self._words().encode(word)
        if len(tokens) > 1:
            raise ValueError(f"{word!r} is {len(tokens)} tokens: {self.to_str_tokens(word)}")
        return tokens[0]

    def tokens_to_residual_directions(self, tokens: Tensor) -> Tensor:
        """Columns of W_U, for TransformerLens's direct logit attribution."""
        return self.W_U.T[tokens]

    def _words(self) -> Vocabulary:
        if self.tokenizer is None:
            raise ValueError(
                "this model has no vocabulary; load it as a run, or set model.tokenizer to a "
                "task's vocabulary or a tokenizer's"
            )
        return self.tokenizer
