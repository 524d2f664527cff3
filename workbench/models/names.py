"""Weight properties and token conversions under their TransformerLens names."""

from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformer_lens import FactoredMatrix

from workbench.components.embed import Embed, PosEmbed, TiedUnembed, Unembed
from workbench.components.readout import YesNo
from workbench.hooks import HookedRootModule
from workbench.settings.config import ModelConfig
from workbench.words.tokenizer import Vocabulary


class NamedModel(HookedRootModule):
    """Base class that exposes a model's weights and tokenizer as TransformerLens does."""

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
        """The unembedding; in a tied model, W_E^T times the readout's scale."""
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
        """Gate weights of gated MLPs."""
        return self._stack("mlp", "W_gate")

    @property
    def W_in(self) -> Float[Tensor, "layer d_model d_mlp"]:
        return self._stack("mlp", "W_in")

    @property
    def W_out(self) -> Float[Tensor, "layer d_mlp d_model"]:
        return self._stack("mlp", "W_out")

    @property
    def b_Q(self) -> Float[Tensor, "layer head d_head"]:
        return self._stack("attn", "b_Q")

    @property
    def b_K(self) -> Float[Tensor, "layer head d_head"]:
        return self._stack("attn", "b_K")

    @property
    def b_V(self) -> Float[Tensor, "layer head d_head"]:
        return self._stack("attn", "b_V")

    @property
    def b_O(self) -> Float[Tensor, "layer d_model"]:
        return self._stack("attn", "b_O")

    @property
    def b_in(self) -> Float[Tensor, "layer d_mlp"]:
        return self._stack("mlp", "b_in")

    @property
    def b_out(self) -> Float[Tensor, "layer d_model"]:
        return self._stack("mlp", "b_out")

    @property
    def QK(self) -> FactoredMatrix:
        """W_Q W_K^T of each head, [layer head d_model d_model]."""
        return FactoredMatrix(self.W_Q, self.W_K.transpose(-2, -1))

    @property
    def OV(self) -> FactoredMatrix:
        """W_V W_O of each head, [layer head d_model d_model]."""
        return FactoredMatrix(self.W_V, self.W_O)

    def all_composition_scores(
        self, mode: Literal["Q", "K", "V"]
    ) -> Float[Tensor, "layer head later_layer later_head"]:
        """Compute how much each later head reads from each head's output in one loop, at most 1.

        The score is |W_OV W| / (|W_OV| |W|), where W is the later head's W_QK (mode Q), its
        transpose (K) or its W_OV (V) (Elhage et al. 2021, "Some observations on attention heads").
        It is 0 where the second head is not in a later layer. Composition across loops, where a
        head can write for every head of the next loop, is not included.
        """
        right = {"Q": self.QK, "K": self.QK.T, "V": self.OV}[mode]
        left, right = self.OV[:, :, None, None], right[None, None]
        norms = left.norm() * right.norm()
        scores = (left @ right).norm() / norms
        layers = torch.arange(self.cfg.n_layers, device=scores.device)
        later = layers[:, None, None, None] < layers[None, None, :, None]
        return torch.where(later, scores, 0.0)

    def accumulated_bias(
        self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True
    ) -> Float[Tensor, " d_model"]:
        """Sum the biases that the layers before `layer` add to the residual stream in one loop.

        Args:
            layer: Index of a looped layer, from 0; the number of layers sums over all of them.
            mlp_input: Whether to include the attention bias of `layer` itself.
            include_mlp_biases: Whether to include the MLP biases.
        """
        if not 0 <= layer <= self.cfg.n_layers - mlp_input:
            raise ValueError(f"layer={layer} is none of the {self.cfg.n_layers} layers in the loop")
        total = self.b_O[: layer + mlp_input].sum(0)
        return total + self.b_out[:layer].sum(0) if include_mlp_biases else total

    def _stack(self, part: str, weight: str) -> Tensor:
        return torch.stack([getattr(getattr(block, part), weight) for block in self.blocks])

    def check_vocabulary(self) -> None:
        """Check that the model reads out to the vocabulary.

        Raises:
            ValueError: The model has a yes/no readout.
        """
        if self.head is not None:
            raise ValueError(
                f"this model answers yes or no by its readout {self.cfg.readout!r}; its states "
                "do not decode into words"
            )

    def to_tokens(self, text: str | list[str]) -> Int[Tensor, "batch pos"]:
        """Return the token ids of one question, or of several questions of equal length.

        Raises:
            ValueError: A word is unknown, a text is empty, the lengths differ, or the model has no
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
        """Convert a typed question to model inputs: `model(**model.ask(text))`.

        The model's task parses the question. A model with a vocabulary but no task takes the
        words as its tokens, unchanged.

        Raises:
            ValueError: The text is not a question of the task, or the model has no vocabulary.
        """
        if self.reader is None:
            return {"tokens": self.to_tokens(question)}
        return {name: tensor.to(self.device) for name, tensor in self.reader(question).items()}

    def to_string(self, tokens: Tensor | Sequence[int]) -> str | list[str]:
        """Return the text of token ids; for a batch, a list of texts."""
        ids = torch.as_tensor(tokens)
        if ids.ndim > 1:
            return [cast(str, self.to_string(row)) for row in ids]
        return self._words().decode(ids.flatten().tolist())

    def to_str_tokens(self, tokens: str | Tensor | Sequence[int]) -> list[str]:
        """Return the words of one text or of one row of token ids."""
        if isinstance(tokens, str):
            tokens = self._words().encode(tokens)
        return [self._words().words[int(token)] for token in torch.as_tensor(tokens).flatten()]

    def to_single_token(self, word: str) -> int:
        """Return the token id of one word.

        Raises:
            ValueError: The text is empty, unknown, or more than one token.
        """
        tokens = self._words().encode(word)
        if len(tokens) > 1:
            raise ValueError(f"{word!r} is {len(tokens)} tokens: {self.to_str_tokens(word)}")
        return tokens[0]

    def tokens_to_residual_directions(self, tokens: Tensor) -> Tensor:
        """Return columns of W_U, for TransformerLens's direct logit attribution."""
        return self.W_U.T[tokens]

    def _words(self) -> Vocabulary:
        if self.tokenizer is None:
            raise ValueError(
                "this model has no vocabulary; load it as a run, or set model.tokenizer to a "
                "task's vocabulary or a tokenizer's"
            )
        return self.tokenizer
