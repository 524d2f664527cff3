"""Tokens of words, digits and signs put together again as a text that people read.

Splitting loses where blanks stood, so that "1 8" and "18" have the same tokens; joining takes the
reading that numbers and abbreviations need: digits in a row are one number, and a sign stands where
English puts it. `split_words(join_words(tokens))` gives the tokens back.
"""

import re
from collections.abc import Sequence

WORD = re.compile(r"<\|[^|>]*\|>|###|\d|\w+|[^\w\s]")
DIGITS = re.compile(r"\d")
BEFORE_ONLY = set(".,;:!?)]}%")  # signs that follow a word without a blank
AFTER_ONLY = set("([{$")  # signs that a word follows without a blank
BETWEEN = set("-'’/&+*=<>^−–")  # signs without blanks on either side, don't and 48/2=24
MINUS = set("-−")


def split_words(text: str) -> list[str]:
    """Words, digits one by one, and signs."""
    return WORD.findall(text)


def join_words(tokens: Sequence[str]) -> str:
    """The text of such tokens, "1,250" and "don't" without blanks."""
    text = ""
    for number, token in enumerate(tokens):
        text += token if _joined(tokens, number) else f" {token}"
    return text.strip()


def _joined(tokens: Sequence[str], number: int) -> bool:
    """Whether a token follows the one before it without a blank."""
    if number == 0:
        return True
    last, token = tokens[number - 1], tokens[number]
    if "|" in last + token or _is_special(last) or _is_special(token):
        return False
    if token in MINUS:
        return not _is_minus(tokens, number)
    if token in BETWEEN or token in BEFORE_ONLY:
        return True
    if last in BETWEEN or last in AFTER_ONLY:
        return True
    if DIGITS.fullmatch(token):
        return bool(DIGITS.fullmatch(last)) or (last in ".," and _is_number(tokens, number))
    # U.S. is one abbreviation, "It ends. So" is two sentences
    return last == "." and len(token) == 1 and token.isupper() and _is_initial(tokens, number)


def _is_minus(tokens: Sequence[str], number: int) -> bool:
    """Whether a sign after a word makes the number behind it negative, as in "falls to -3"."""
    following = tokens[number + 1 : number + 2]
    return tokens[number - 1].isalpha() and any(map(DIGITS.fullmatch, following))


def _is_number(tokens: Sequence[str], number: int) -> bool:
    """Whether a digit goes on a number after its point or comma."""
    return number > 1 and bool(DIGITS.fullmatch(tokens[number - 2]))


def _is_initial(tokens: Sequence[str], number: int) -> bool:
    """Whether the word before the period is a single capital letter."""
    return number > 1 and len(tokens[number - 2]) == 1 and tokens[number - 2].isupper()


def _is_special(token: str) -> bool:
    return token == "###"
