"""Scoring of answers in words, by the rules of GSM8K, HotpotQA and ProsQA.

An output counts as answered if it contains anything that could be right: a number, or a word. Any
other output is wrong, and can be counted separately.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from workbench.settings.config import nearest
from workbench.tasks.worded.problem import ProblemError

FINAL = "####"
# With or without thousands commas and decimals; a minus after a word or a number is not a sign
NUMBER = re.compile(
    r"(?P<sign>(?<![\w)])(?:[-−]\$?|\$[-−]))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
WHOLE_OR_CONCEPT = ("answer", "concept")
CLOSED = ("yes", "no", "noanswer")  # answers without credit for partial overlap


@dataclass(frozen=True)
class Score:
    """Score of one answer."""

    right: bool
    f1: float | None
    """Word overlap with the right answer; None if the task's rules do not define it."""
    answered: bool


def number_in(text: str) -> Decimal | None:
    """Return the number that a text gives as its answer, or None if it contains no number.

    This is the first number after "####" on the same line, or else the last number before "####".
    Everything after that line is ignored. Without "####", it is the last number of the text.
    """
    before, final, after = text.partition(FINAL)
    if final:
        first = NUMBER.search(after.lstrip(" ").split("\n")[0])
        if first:
            return _value(first)
    found = list(NUMBER.finditer(before))
    return _value(found[-1]) if found else None


def only_number_in(text: str) -> Decimal | None:
    """Return the number in a text that contains exactly one number, else None."""
    found = list(NUMBER.finditer(text))
    return _value(found[0]) if len(found) == 1 else None


def _value(found: re.Match[str]) -> Decimal:
    size = Decimal(found["digits"].replace(",", ""))
    return -size if found["sign"] else size


def score_gsm8k(said: str, gold: str) -> Score:
    """Score an answer by comparing numbers, so that 29.00 equals 29.

    Raises:
        ProblemError: The right answer is not one number.
    """
    wanted = only_number_in(gold)
    if wanted is None:
        raise ProblemError(f"the right answer {gold!r} is not one number")
    number = number_in(said)
    return Score(number == wanted, None, number is not None)


def normalised(text: str) -> str:
    """Return a text in lower case, without punctuation, articles and extra spaces.

    These are the rules of Yang et al. 2018.
    """
    plain = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", plain).split())


def score_hotpotqa(said: str, gold: str) -> Score:
    """Score an answer by exact match and F1 over words, by the official rules.

    F1 is 0 if either answer is yes, no or noanswer and the other differs. As in the official
    script, two answers that are empty after normalisation match and have an F1 of 0.
    """
    one, other = normalised(said), normalised(gold)
    return Score(one == other, _f1(one, other), bool(one) or (one == other and bool(said.strip())))


def _f1(said: str, gold: str) -> float:
    if said != gold and (said in CLOSED or gold in CLOSED):
        return 0.0
    words, wanted = said.split(), gold.split()
    common = (Counter(words) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def score_prosqa(said: str, gold: str, by: str = "answer") -> Score:
    """Score an answer by comparing whole answers, or only their concepts with `by="concept"`.

    Spacing and the final period are ignored. The concept is the last word, so "Bob is a lorpus."
    has the same concept as "Tom is a lorpus." but is a different answer.

    Raises:
        ProblemError: `by` is neither answer nor concept.
    """
    if by not in WHOLE_OR_CONCEPT:
        raise ProblemError(f"by={by!r}: {nearest(by, WHOLE_OR_CONCEPT)}")
    words, wanted = _plain(said), _plain(gold)
    right = words == wanted if by == "answer" else words[-1:] == wanted[-1:]
    return Score(right and bool(words), None, bool(words))


def _plain(text: str) -> list[str]:
    return text.strip().removesuffix(".").split()
