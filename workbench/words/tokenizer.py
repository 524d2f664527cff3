"""Pretrained tokenizers behind the interface of a vocabulary of words."""

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from workbench.settings.config import nearest
from workbench.words.vocabulary import WordVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What marks thoughts in a text: around them, in their place, and in place of a pause
SPECIALS = ("<|start-latent|>", "<|end-latent|>", "<|latent|>", "<|pause|>")


class PretrainedVocabulary:
    """A tokenizer of transformers; a text is split as it splits it, no start token is added."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        add_specials: bool = False,
        size: int | None = None,
    ) -> None:
        """Wrap a tokenizer.

        Args:
            tokenizer: As transformers loads it; tokens may be added to it.
            add_specials: Add those of `SPECIALS` that it lacks. A model then needs embeddings for
                them, as `from_pretrained(..., add_tokens=SPECIALS)` makes them.
            size: Rows of the model's embedding, where there are more than tokens; the spare ids
                are given words of their own.
        """
        self.tokenizer: Any = tokenizer
        self.size = size or 0
        if add_specials:
            self.add(SPECIALS)

    def __len__(self) -> int:
        return max(self.n_tokens, self.size)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PretrainedVocabulary":
        return self  # copies of a model read the same words

    @cached_property
    def n_tokens(self) -> int:
        """Ids that the tokenizer itself may give: one more than the largest."""
        return max(self._known.values(), default=-1) + 1

    @cached_property
    def _known(self) -> dict[str, int]:
        return dict(self.tokenizer.get_vocab())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The literal text of every token; bytes that are no text of their own are �."""
        names: list[str | None] = [None] * len(self)
        for name, token in self._known.items():
            names[token] = name
        return tuple(
            f"<|unused-{token}|>" if name is None else self._literal(name, token)
            for token, name in enumerate(names)
        )

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of a token's literal text; of several with one text, the first."""
        return {word: token for token, word in reversed(list(enumerate(self.words)))}

    def _literal(self, name: str, token: int) -> str:
        if "▁" in name:  # a tokenizer that marks blanks so drops the first when it decodes
            return name.replace("▁", " ")
        return self.decode([token])

    def encode(self, text: str) -> list[int]:
        """Token ids of a text.

        Raises:
            ValueError: The text is empty.
        """
        if not text:
            raise ValueError("the question is empty; it needs at least one word")
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids, special tokens included."""
        parts: list[str] = []
        for is_known, some in groupby(tokens, lambda token: token < self.n_tokens):
            if is_known:
                parts.append(self.tokenizer.decode(list(some), clean_up_tokenization_spaces=False))
            else:
                parts += [self.words[token] for token in some]
        return "".join(parts)

    def reread(self, text: str) -> str:
        """A text as it comes back from its tokens; unchanged if the tokenizer cannot say it."""
        tokens = self.encode(text) if text else []
        return text if self.unknown_token in tokens else self.decode(tokens)

    def add(self, tokens: Sequence[str]) -> list[int]:
        """Add those tokens that the tokenizer lacks; their ids."""
        lacking = [name for name in tokens if name not in self._known]
        if lacking:
            self.tokenizer.add_tokens(lacking, special_tokens=True)
            for kept in ("_known", "n_tokens", "words", "ids"):
                self.__dict__.pop(kept, None)
        return [self._known[name] for name in lacking]

    def special(self, name: str) -> int:
        """The id of a token by its name in the tokenizer, `<|latent|>` for one.

        Raises:
            ValueError: The tokenizer lacks it.
        """
        if name in self._known:
            return self._known[name]
        if name in SPECIALS:
            lacking = ", ".join(special for special in SPECIALS if special not in self._known)
            raise ValueError(
                f"this tokenizer lacks the special tokens {lacking}; load the model with "
                "add_tokens=workbench.words.tokenizer.SPECIALS"
            )
        near = nearest(name, {*SPECIALS, *self.tokenizer.all_special_tokens})
        raise ValueError(f"this tokenizer has no token {name!r}; {near}")

    @property
    def unknown_token(self) -> int | None:
        """The id that stands for text the tokenizer has no token for; None if it has none such.

        GPT-2 names its end of a text there, which is no word of an answer.
        """
        token = self.tokenizer.unk_token_id
        return None if token == self.tokenizer.eos_token_id else token

    @property
    def reserved(self) -> tuple[str, ...]:
        """What a text must not spell out: the names of special tokens."""
        named = {*SPECIALS, *self.tokenizer.all_special_tokens}
        return tuple(sorted(named - {self.tokenizer.unk_token}))

    @property
    def end(self) -> int:
        """The token that ends a text.

        Raises:
            ValueError: The tokenizer names none.
        """
        if self.tokenizer.eos_token_id is None:
            raise ValueError("this tokenizer names no token for the end of a text (eos_token)")
        return int(self.tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """The token that fills up rows; of a tokenizer without one, the end of a text."""
        token = self.tokenizer.pad_token_id
        return self.end if token is None else int(token)


def load_vocabulary(source: str, add_specials: bool = False) -> PretrainedVocabulary:
    """The tokenizer of a Hub id, a folder or a GGUF file.

    Args:
        source: Where it is; only a Hub id is looked up in the network.
        add_specials: Add those of `SPECIALS` that it lacks.

    Raises:
        PretrainedError: There is none.
    """
    from workbench.pretrained.architectures import PretrainedError
    from workbench.pretrained.sources import find_tokenizer

    found = find_tokenizer(source).vocabulary(0)
    if found is None:
        raise PretrainedError(f"{source} has no tokenizer")
    return PretrainedVocabulary(found.tokenizer, add_specials)


Vocabulary = WordVocabulary | PretrainedVocabulary
