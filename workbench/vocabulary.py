"""Words and their ids, for tasks whose tokens are whole words."""

from collections.abc import Sequence

from workbench.config import nearest


class WordVocabulary:
    """A fixed list of words; a text is words between spaces.

    The first word is the padding; no start token is added to a text.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.ids = {word: token for token, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text.

        Raises:
            ValueError: The text is empty or holds an unknown word.
        """
        words = text.split()
        if not words:
            raise ValueError("the question is empty; it needs at least one word")
        for word in words:
            if word not in self.ids:
                raise ValueError(f"unknown word {word!r}; {nearest(word, self.words)}")
        return [self.ids[word] for word in words]

    def decode(self, tokens: Sequence[int]) -> str:
        """The words of token ids, between spaces."""
        return " ".join(self.words[token] for token in tokens)
