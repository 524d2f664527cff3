"""Words and their ids, for tasks whose tokens are whole words."""

from collections.abc import Callable, Sequence
from functools import cached_property

from workbench.settings.config import nearest


class WordVocabulary:
    """A fixed list of words; a text is words between spaces, unless `split` and `join` differ.

    The first word is the padding; no start token is added to a text. An unknown word is refused,
    unless there is one that stands for all of them.
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
        """Token ids of a text.

        Raises:
            ValueError: The text is empty or holds an unknown word.
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
        """The id of the word that stands for all unknown ones, if there is one."""
        return None if self.unknown is None else self.ids[self.unknown]

    @cached_property
    def reserved(self) -> tuple[str, ...]:
        """What a text must not spell out: the names of tokens that stand for no word."""
        return tuple(w for w in self.words if w.startswith("<|") and w != self.unknown)

    @property
    def end(self) -> int:
        """The token that ends a text."""
        return self.special("<|end|>")

    def special(self, name: str) -> int:
        """The id of a token that stands for no word, `<|latent|>` for one.

        Raises:
            ValueError: The vocabulary has no such token.
        """
        if name not in self.ids:
            raise ValueError(f"this vocabulary has no token {name!r}, which thoughts need")
        return self.ids[name]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids, as `join` puts their words together."""
        return self.join([self.words[token] for token in tokens])

    def reread(self, text: str) -> str:
        """A text as it comes back from this vocabulary's words; unknown words stay as they are."""
        return self.join(self.split(text))
