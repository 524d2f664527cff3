"""Encodes a problem as token ids, and finds the tokens that identify its answer and its bridges.

A word may consist of several tokens, and two names may begin with the same tokens. A word is
identified by its first differing token, encoded in context: a name has a space before it.
"""

from collections.abc import Sequence

from workbench.tasks.batch import NONE
from workbench.tasks.worded.layout import Encoded
from workbench.tasks.worded.problem import Problem, ProblemError
from workbench.words.tokenizer import Vocabulary

ANSWER = "###"  # stands before an answer


def encoded(
    vocabulary: Vocabulary,
    problem: Problem,
    decides: tuple[str, str, str],
    bridges: Sequence[str],
    names: Sequence[str],
) -> Encoded:
    """Encode a problem as token ids.

    Args:
        vocabulary: Words or a tokenizer.
        problem: The problem.
        decides: The text before the answer's deciding word, that word, and the wrong word or "".
        bridges: The word that each step leads to.
        names: The words that a bridge must be told apart from.

    Raises:
        ProblemError: A text of the problem contains a special token.
    """
    for text in (problem.question, *problem.steps, problem.answer):
        _check_plain(vocabulary, text)
    answer = vocabulary.encode(f"{ANSWER} {problem.answer}")
    at, candidates = _decided(vocabulary, problem.answer, answer, decides)
    return Encoded(
        question=vocabulary.encode(f"{problem.question}\n"),
        steps=[vocabulary.encode(f"{step}\n") for step in problem.steps],
        answer=answer,
        decides=at,
        bridges=[telling_piece(vocabulary, word, names) for word in bridges],
        candidates=candidates,
    )


def telling_piece(vocabulary: Vocabulary, word: str, names: Sequence[str]) -> int:
    """Return the first token of a word that tells it from all other names.

    The word is encoded with a space before it. If another name begins with all of the word's
    tokens, return its last token.
    """
    pieces = _pieces(vocabulary, word)
    if len(pieces) == 1:
        return pieces[0]
    others = [_pieces(vocabulary, name) for name in names if name != word]
    for number in range(1, len(pieces)):
        if all(other[:number] != pieces[:number] for other in others):
            return pieces[number - 1]
    return pieces[-1]


def _pieces(vocabulary: Vocabulary, word: str) -> list[int]:
    """Return the tokens of a word inside a text, without tokens that are only a space."""
    opening = vocabulary.encode(ANSWER)
    found = vocabulary.encode(f"{ANSWER} {word}")[len(opening) :]
    return [token for token in found if vocabulary.decode([token]).strip()] or found


def _decided(
    vocabulary: Vocabulary, text: str, answer: list[int], decides: tuple[str, str, str]
) -> tuple[int, tuple[int, int]]:
    """Return where an answer differs from the wrong one, and the two tokens there.

    Without a single wrong answer, this is the first token of the deciding word that is more than a
    space, and the wrong token is NONE.
    """
    before, right, wrong = decides
    if not wrong:
        opening = len(vocabulary.encode(f"{ANSWER} {before}".strip()))
        first = min(opening, len(answer) - 1)
        said = (i for i in range(first, len(answer)) if vocabulary.decode([answer[i]]).strip())
        at = next(said, first)
        return at, (answer[at], NONE)
    after = text[len(before) + len(right) :]
    # Include the end token: "zum" ends where "zumpus" goes on
    ours = [*answer, vocabulary.end]
    other = [*vocabulary.encode(f"{ANSWER} {before}{wrong}{after}"), vocabulary.end]
    pairs = zip(ours, other, strict=False)
    at = next((i for i, (one, two) in enumerate(pairs) if one != two), len(ours) - 1)
    return at, (ours[at], other[min(at, len(other) - 1)])


def _check_plain(vocabulary: Vocabulary, text: str) -> None:
    """Reject text that contains a special token, because it would be encoded as that token."""
    found = [name for name in vocabulary.reserved if name in text]
    if found:
        raise ProblemError(
            f"{text!r:.60} holds {found[0]!r}, which stands for a special token of the "
            "vocabulary; take it out of the data"
        )
