"""A problem as token ids, and the tokens by which its answer and its steps are told from others.

A word may be several tokens, and two names may begin with the same ones. What counts is the first
token that differs, in the text it stands in: a name has a blank before it.
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
    """A problem as token ids.

    Args:
        vocabulary: Words or a tokenizer.
        problem: The problem.
        decides: What precedes the word that decides the answer, that word, and the wrong one or "".
        bridges: A word for what each step leads to.
        names: The words from which a bridge is to be told.

    Raises:
        ProblemError: A text of the problem spells out a special token.
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
    """The first token of a word, a blank before it, by which it is none of the other names.

    The last one if all its tokens begin another name as well.
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
    """The tokens of a word inside a text, those that are more than a blank."""
    opening = vocabulary.encode(ANSWER)
    found = vocabulary.encode(f"{ANSWER} {word}")[len(opening) :]
    return [token for token in found if vocabulary.decode([token]).strip()] or found


def _decided(
    vocabulary: Vocabulary, text: str, answer: list[int], decides: tuple[str, str, str]
) -> tuple[int, tuple[int, int]]:
    """Where an answer parts from the wrong one, and the two tokens there; NONE for no wrong one.

    Where any other answer may be wrong, that is the first token of the answer that is more than a
    blank.
    """
    before, right, wrong = decides
    if not wrong:
        opening = len(vocabulary.encode(f"{ANSWER} {before}".strip()))
        first = min(opening, len(answer) - 1)
        said = (i for i in range(first, len(answer)) if vocabulary.decode([answer[i]]).strip())
        at = next(said, first)
        return at, (answer[at], NONE)
    after = text[len(before) + len(right) :]
    # The end of the text counts: of zum and zumpus, one ends where the other goes on
    ours = [*answer, vocabulary.end]
    other = [*vocabulary.encode(f"{ANSWER} {before}{wrong}{after}"), vocabulary.end]
    pairs = zip(ours, other, strict=False)
    at = next((i for i, (one, two) in enumerate(pairs) if one != two), len(ours) - 1)
    return at, (ours[at], other[min(at, len(other) - 1)])


def _check_plain(vocabulary: Vocabulary, text: str) -> None:
    """Refuse text that spells out a special token, as which it would be read."""
    found = [name for name in vocabulary.reserved if name in text]
    if found:
        raise ProblemError(
            f"{text!r:.60} holds {found[0]!r}, which stands for a special token of the "
            "vocabulary; take it out of the data"
        )
