"""Boolean expressions as characters: drawn as in VCoT's second experiment, checked, evaluated.

An expression is written with T, F, !, &, | and parentheses; ! binds closest, then &, then |. Its
depth is how many parentheses enclose its innermost part. A batch of expressions is an array of the
numbers of their characters [batch pos]; characters that are none of these seven say nothing.
"""

from bisect import bisect
from collections.abc import Iterator
from functools import cache

import numpy as np
from jaxtyping import Bool, Int

WORDS = ("<pad>", "<cls>", "T", "F", "&", "|", "!", "(", ")")
TRUE, FALSE, AND, OR, NOT, OPEN, CLOSE = range(2, len(WORDS))
UNKNOWN = -1
BLOCK = 4096  # numbers drawn at a time
# A value is two bits: may it be true, may it be false?
NOTHING, EVERYTHING = np.array([[False], [True]]), np.array([[True], [False]])  # of | and of &

Tokens = Int[np.ndarray, "batch pos"]
Bits = Bool[np.ndarray, "2 n"]
Rows = Int[np.ndarray, " batch"]


def uniform(rng: np.random.Generator) -> Iterator[float]:
    """Endlessly many numbers between 0 and 1, drawn in blocks for speed."""
    while True:
        yield from rng.random(BLOCK).tolist()


def draw(depth: int, dice: Iterator[float]) -> str:
    """A random expression of exactly this depth.

    One side of each operator is a level less deep than the whole, the other side d levels deep with
    a weight that halves with each level, so that expressions stay short.
    """
    characters: list[str] = []
    _write(depth, dice, characters)
    return "".join(characters)


def _write(depth: int, dice: Iterator[float], out: list[str]) -> None:
    if depth == 0:
        _write_atom(dice, out)
        return
    if next(dice) < 0.25:
        out.append("!")
    sides = [depth - 1, bisect(_shallowness(depth), next(dice))]
    if next(dice) < 0.5:
        sides.reverse()
    out.append("(")
    _write(sides[0], dice, out)
    out.append("&" if next(dice) < 0.5 else "|")
    _write(sides[1], dice, out)
    out.append(")")


def _write_atom(dice: Iterator[float], out: list[str]) -> None:
    kind = next(dice)
    if 0.5 <= kind < 0.75:
        out.append("!")
    out.append("T" if next(dice) < 0.5 else "F")
    if kind >= 0.75:
        out.append("&" if next(dice) < 0.5 else "|")
        out.append("T" if next(dice) < 0.5 else "F")


@cache
def _shallowness(depth: int) -> list[float]:
    """Chances that the other side is at most 0, 1, … depth − 2 levels deep."""
    weights = 2.0 ** -np.arange(depth)
    chances: list[float] = (weights.cumsum() / weights.sum())[:-1].tolist()
    return chances


def check(text: str) -> None:
    """Refuse what is no expression.

    Raises:
        ValueError: The text does not parse; it says where.
    """
    opened: list[int] = []
    wants_value = True
    for place, character in enumerate(text, 1):
        here = f"{text!r} does not parse: character {place}, {character!r},"
        if wants_value != (character in "TF!("):
            wanted = "one of T F ! (" if wants_value else "one of & | )"
            raise ValueError(f"{here} stands where {wanted} belongs")
        if character == "(":
            opened.append(place)
        if character == ")":
            if not opened:
                raise ValueError(f"{here} closes what was not opened")
            opened.pop()
        wants_value = character not in "TF)"
    if wants_value:
        raise ValueError(f"{text!r} does not parse: it ends where a value belongs")
    if opened:
        raise ValueError(f"{text!r} does not parse: '(' at {opened[-1]} is not closed")


def nesting(tokens: Tokens) -> Tokens:
    """How many parentheses enclose each character; those that open count as enclosed."""
    return ((tokens == OPEN).astype(np.int64) - (tokens == CLOSE)).cumsum(1)


def evaluate(tokens: Tokens, levels: int | None = None) -> Rows:
    """Value of each expression: 1, 0, or −1 if its outermost `levels` leave it open.

    Without `levels` everything is looked at. A pass over the characters keeps for each open
    parenthesis the terms of | that are done, the term at hand, and whether a ! waits for its
    value.
    """
    level = nesting(tokens)
    deepest = int(level.max(initial=0))
    seen = deepest if levels is None else levels
    done = np.zeros((2, deepest + 2, len(tokens)), bool)
    term, negated = done.copy(), done[0].copy()
    done[:, 0], term[:, 0] = NOTHING, EVERYTHING
    columns, levels_of = np.ascontiguousarray(tokens.T), np.ascontiguousarray(level.T)
    for symbol, here in zip(columns, levels_of, strict=True):
        rows = np.flatnonzero(symbol == OPEN)
        done[:, here[rows], rows], term[:, here[rows], rows] = NOTHING, EVERYTHING
        negated[here[rows], rows] = False
        rows = np.flatnonzero(symbol == NOT)
        negated[here[rows], rows] ^= True
        rows = np.flatnonzero(symbol == OR)
        now = (here[rows], rows)
        done[:, *now] = _either(done[:, *now], term[:, *now])
        term[:, *now] = EVERYTHING
        rows = np.flatnonzero((symbol == TRUE) | (symbol == FALSE) | (symbol == CLOSE))
        now, inner = (here[rows], rows), (here[rows] + 1, rows)
        value = np.stack((symbol[rows] == TRUE, symbol[rows] == FALSE)) | (here[rows] > seen)
        within = _either(done[:, *inner], term[:, *inner])
        value = np.where(symbol[rows] == CLOSE, within, value)
        value = np.where(negated[now], value[::-1], value)
        negated[now] = False
        term[:, *now] = _both(term[:, *now], value)
    true, false = _either(done[:, 0], term[:, 0])
    return np.where(true & false, UNKNOWN, true.astype(np.int64))


def _either(one: Bits, other: Bits) -> Bits:
    return np.stack((one[0] | other[0], one[1] & other[1]))


def _both(one: Bits, other: Bits) -> Bits:
    return np.stack((one[0] & other[0], one[1] | other[1]))


def twins(
    tokens: Tokens, held: int, rng: np.random.Generator, tries: int
) -> tuple[Tokens, Bool[np.ndarray, " batch"]]:
    """For each expression one of the other value, with the same characters on every level.

    The constants of a level change places among themselves, and so do its operators; parentheses,
    negations and the outermost `held` levels stay. What has no such twin, or shows none in `tries`
    random orders, is marked False.
    """
    level = nesting(tokens)
    places = np.arange(tokens.shape[1])
    constant = (tokens == TRUE) | (tokens == FALSE)
    moves = (constant | (tokens == AND) | (tokens == OR)) & (level > held)
    group = np.where(moves, 2 * level + constant, 2 * level.max(initial=0) + 2 + places)
    ordered = group.argsort(1, kind="stable")
    found = np.zeros(len(tokens), bool)
    result, value = tokens.copy(), evaluate(tokens)
    for _ in range(tries):
        rows = np.flatnonzero(~found)
        if not len(rows):
            break
        mixed = (group[rows] + rng.random((len(rows), len(places)))).argsort(1)
        tried = np.empty_like(tokens[rows])
        np.put_along_axis(tried, ordered[rows], np.take_along_axis(tokens[rows], mixed, 1), 1)
        other = evaluate(tried) != value[rows]
        result[rows[other]] = tried[other]
        found[rows[other]] = True
    return result, found
