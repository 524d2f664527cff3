"""Splits text into words, digits and punctuation, and joins such tokens into readable text again.

Splitting discards spaces, so that "1 8" and "18" have the same tokens. Joining assumes the reading
that numbers and abbreviations need: adjacent digits form one number, and punctuation is spaced as
in English. `split_words(join_words(tokens))` returns the same tokens.
"""

import re
from collections.abc import Sequence

WORD = re.compile(r"<\|[^|>]*\|>|###|\d|\w+|[^\w\s]")
DIGITS = re.compile(r"\d")
BEFORE_ONLY = set(".,;:!?)]}%")  # no space before these
AFTER_ONLY = set("([{$")  # no space after these
BETWEEN = set("-'’/&+*=<>^−–")  # no space on either side: don't, 48/2=24
MINUS = set("-−")


def split_words(text: str) -> list[str]:
    """Split a text into words, single digits and punctuation marks."""
    return WORD.findall(text)


def join_words(tokens: Sequence[str]) -> str:
    """Join such tokens into a text, with "1,250" and "don't" written without spaces."""
    text = ""
    for number, token in enumerate(tokens):
        text += token if _joined(tokens, number) else f" {token}"
    return text.strip()


def _joined(tokens: Sequence[str], number: int) -> bool:
    """Return whether a token follows the previous one without a space."""
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
    # "U.S." is one abbreviation; "It ends. So" is two sentences
    return last == "." and len(token) == 1 and token.isupper() and _is_initial(tokens, number)


def _is_minus(tokens: Sequence[str], number: int) -> bool:
    """Return whether a minus after a word makes the next number negative, as in "falls to -3"."""
    following = tokens[number + 1 : number + 2]
    return tokens[number - 1].isalpha() and any(map(DIGITS.fullmatch, following))


def _is_number(tokens: Sequence[str], number: int) -> bool:
    """Return whether a digit continues a number after its decimal point or comma."""
    return number > 1 and bool(DIGITS.fullmatch(tokens[number - 2]))


def _is_initial(tokens: Sequence[str], number: int) -> bool:
    """Return whether the word before the period is a single capital letter."""
    return number > 1 and len(tokens[number - 2]) == 1 and tokens[number - 2].isupper()


def _is_special(token: str) -> bool:
    return token == "###"
