"""Is an answer in words right? The rules of GSM8K, HotpotQA and ProsQA.

What a model said counts as answered when it says anything that could be right: a number, or a
word. An answer that is none is wrong, and can be counted apart.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from workbench.settings.config import nearest
from workbench.tasks.worded.problem import ProblemError

FINAL = "####"
# Thousands by commas or not, with decimals or without; a minus after a word or a number is no sign
NUMBER = re.compile(
    r"(?P<sign>(?<![\w)])(?:[-−]\$?|\$[-−]))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
WHOLE_OR_CONCEPT = ("answer", "concept")
CLOSED = ("yes", "no", "noanswer")  # answers of which a part counts nothing


@dataclass(frozen=True)
class Score:
    """How good one answer is."""

    right: bool
    f1: float | None
    """Overlap of words with the right answer; None where the rules know none."""
    answered: bool


def number_in(text: str) -> Decimal | None:
    """The number that a text gives as its answer, if it holds any.

    That is the first after "####" on the same line, else the last of what stands before it; all
    that follows that line is ignored. Without "####", the last of all.
    """
    before, final, after = text.partition(FINAL)
    if final:
        first = NUMBER.search(after.lstrip(" ").split("\n")[0])
        if first:
            return _value(first)
    found = list(NUMBER.finditer(before))
    return _value(found[-1]) if found else None


def only_number_in(text: str) -> Decimal | None:
    """The number of a text that holds one number and no other."""
    found = list(NUMBER.finditer(text))
    return _value(found[0]) if len(found) == 1 else None


def _value(found: re.Match[str]) -> Decimal:
    size = Decimal(found["digits"].replace(",", ""))
    return -size if found["sign"] else size


def score_gsm8k(said: str, gold: str) -> Score:
    """Compare numbers, so that 29.00 is 29.

    Raises:
        ProblemError: The right answer is not one number.
    """
    wanted = only_number_in(gold)
    if wanted is None:
        raise ProblemError(f"the right answer {gold!r} is not one number")
    number = number_in(said)
    return Score(number == wanted, None, number is not None)


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous blanks (Yang et al. 2018)."""
    plain = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", plain).split())


def score_hotpotqa(said: str, gold: str) -> Score:
    """Exact match and F1 of words by the official rules.

    F1 of yes, no and noanswer is 0 unless both are equal. As officially, two answers of which
    nothing is left are equal and have F1 0.
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
    """Compare whole answers, whatever the blanks and the final period; by "concept", these alone.

    The concept is the last word, so that "Bob is a lorpus." holds the concept of "Tom is a
    lorpus." but is another answer.

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
