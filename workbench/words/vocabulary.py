"""Vocabularies for tasks whose tokens are whole words."""

from collections.abc import Callable, Sequence
from functools import cached_property

from workbench.settings.config import nearest


class WordVocabulary:
    """A fixed list of words; texts are split at spaces, unless `split` and `join` are given.

    The first word is the padding; no start token is added to a text. An unknown word is an error,
    unless `unknown` is the word that replaces all unknown words.
    """

    def __init__(
        self,
        words: Sequence[str],
        split: Callable[[str], list[str]] = str.split,
        unknown: str | None = None,
        join: Callable[[Sequence[str]], str] = " ".join,
    ) -> None:
        self.words = tuple(words)
        self.split = split
        self.join = join
        self.unknown = unknown
        self.ids = {word: token for token, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text.

        Raises:
            ValueError: The text is empty or contains an unknown word.
        """
        words = self.split(text)
        if not words:
            raise ValueError("the question is empty; it needs at least one word")
        if self.unknown is not None:
            words = [word if word in self.ids else self.unknown for word in words]
        for word in words:
            if word not in self.ids:
                raise ValueError(f"unknown word {word!r}; {nearest(word, self.words)}")
        return [self.ids[word] for word in words]

    @property
    def unknown_token(self) -> int | None:
        """The id of the word that replaces all unknown words, or None."""
        return None if self.unknown is None else self.ids[self.unknown]

    @cached_property
    def reserved(self) -> tuple[str, ...]:
        """The strings that a text must not contain: the names of special tokens."""
        return tuple(w for w in self.words if w.startswith("<|") and w != self.unknown)

    @property
    def end(self) -> int:
        """The id of the end-of-text token."""
        return self.special("<|end|>")

    def special(self, name: str) -> int:
        """Return the id of a special token, for example `<|latent|>`.

        Raises:
            ValueError: The vocabulary has no such token.
        """
        if name not in self.ids:
            raise ValueError(f"this vocabulary has no token {name!r}, which thoughts need")
        return self.ids[name]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, with the words combined by `join`."""
        return self.join([self.words[token] for token in tokens])

    def reread(self, text: str) -> str:
        """Split and rejoin a text; unknown words are kept unchanged."""
        return self.join(self.split(text))
