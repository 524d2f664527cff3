"""Pretrained tokenizers with the interface of a `WordVocabulary`."""

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from workbench.settings.config import nearest
from workbench.words.vocabulary import WordVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# The tokens that mark thoughts in a text: around thoughts, in place of one, and for a pause
SPECIALS = ("<|start-latent|>", "<|end-latent|>", "<|latent|>", "<|pause|>")


class PretrainedVocabulary:
    """A vocabulary that wraps a transformers tokenizer; no start token is added to a text."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        add_specials: bool = False,
        size: int | None = None,
    ) -> None:
        """Wrap a tokenizer.

        Args:
            tokenizer: A tokenizer loaded by transformers; tokens may be added to it.
            add_specials: Add the tokens of `SPECIALS` that it lacks. The model then needs
                embeddings for them, which `from_pretrained(..., add_tokens=SPECIALS)` adds.
            size: Number of rows of the model's embedding, if it exceeds the number of tokens; the
                unused ids get placeholder words.
        """
        self.tokenizer: Any = tokenizer
        self.size = size or 0
        if add_specials:
            self.add(SPECIALS)

    def __len__(self) -> int:
        return max(self.n_tokens, self.size)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PretrainedVocabulary":
        return self  # copies of a model share the vocabulary

    @cached_property
    def n_tokens(self) -> int:
        """Number of ids that the tokenizer itself can return: its largest id plus one."""
        return max(self._known.values(), default=-1) + 1

    @cached_property
    def _known(self) -> dict[str, int]:
        return dict(self.tokenizer.get_vocab())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The literal text of every token; bytes that are not valid text by themselves become �."""
        names: list[str | None] = [None] * len(self)
        for name, token in self._known.items():
            names[token] = name
        return tuple(
            f"<|unused-{token}|>" if name is None else self._literal(name, token)
            for token, name in enumerate(names)
        )

    @cached_property
    def ids(self) -> dict[str, int]:
        """A map from literal text to token id; the first id if several tokens share one."""
        return {word: token for token, word in reversed(list(enumerate(self.words)))}

    def _literal(self, name: str, token: int) -> str:
        if "▁" in name:  # tokenizers that mark spaces this way drop a leading one in decoding
            return name.replace("▁", " ")
        return self.decode([token])

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text.

        Raises:
            ValueError: The text is empty.
        """
        if not text:
            raise ValueError("the question is empty; it needs at least one word")
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, including special tokens."""
        parts: list[str] = []
        for is_known, some in groupby(tokens, lambda token: token < self.n_tokens):
            if is_known:
                parts.append(self.tokenizer.decode(list(some), clean_up_tokenization_spaces=False))
            else:
                parts += [self.words[token] for token in some]
        return "".join(parts)

    def reread(self, text: str) -> str:
        """Encode and decode a text; return it unchanged if the tokenizer cannot represent it."""
        tokens = self.encode(text) if text else []
        return text if self.unknown_token in tokens else self.decode(tokens)

    def add(self, tokens: Sequence[str]) -> list[int]:
        """Add the tokens that the tokenizer lacks, and return their ids."""
        lacking = [name for name in tokens if name not in self._known]
        if lacking:
            self.tokenizer.add_tokens(lacking, special_tokens=True)
            for kept in ("_known", "n_tokens", "words", "ids"):
                self.__dict__.pop(kept, None)
        return [self._known[name] for name in lacking]

    def special(self, name: str) -> int:
        """Return the id of a token by its name in the tokenizer, for example `<|latent|>`.

        Raises:
            ValueError: The tokenizer has no such token.
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
        """The id for text that the tokenizer has no token for, or None.

        GPT-2's unknown token is its end-of-text token, which never stands for a word; the result
        is then None.
        """
        token = self.tokenizer.unk_token_id
        return None if token == self.tokenizer.eos_token_id else token

    @property
    def reserved(self) -> tuple[str, ...]:
        """The strings that a text must not contain: the names of special tokens."""
        named = {*SPECIALS, *self.tokenizer.all_special_tokens}
        return tuple(sorted(named - {self.tokenizer.unk_token}))

    @property
    def end(self) -> int:
        """The id of the end-of-text token.

        Raises:
            ValueError: The tokenizer does not define one.
        """
        if self.tokenizer.eos_token_id is None:
            raise ValueError("this tokenizer names no token for the end of a text (eos_token)")
        return int(self.tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """The id of the padding token, or of the end-of-text token if the tokenizer has none."""
        token = self.tokenizer.pad_token_id
        return self.end if token is None else int(token)


def load_vocabulary(source: str, add_specials: bool = False) -> PretrainedVocabulary:
    """Load the tokenizer of a Hub id, a folder or a GGUF file.

    Args:
        source: A Hub id, or the path of a folder or file; only a Hub id uses the network.
        add_specials: Add the tokens of `SPECIALS` that it lacks.

    Raises:
        PretrainedError: The source has no tokenizer.
    """
    from workbench.pretrained.architectures import PretrainedError
    from workbench.pretrained.sources import find_tokenizer

    found = find_tokenizer(source).vocabulary(0)
    if found is None:
        raise PretrainedError(f"{source} has no tokenizer")
    return PretrainedVocabulary(found.tokenizer, add_specials)


Vocabulary = WordVocabulary | PretrainedVocabulary
