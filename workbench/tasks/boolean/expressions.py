"""Boolean expressions as characters: drawn as in VCoT's second experiment, checked, evaluated.

An expression is written with T, F, !, &, | and parentheses; ! binds closest, then &, then |. Its
depth is the number of parentheses around its innermost part. A batch of expressions is an array of
character numbers [batch pos]; numbers of other tokens (<pad>, <cls>) are ignored.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from jaxtyping import Bool, Int, UInt8

WORDS = ("<pad>", "<cls>", "T", "F", "&", "|", "!", "(", ")")
TRUE, FALSE, AND, OR, NOT, OPEN, CLOSE = range(2, len(WORDS))
NUMBERED = bytes.maketrans(b" TF&|!()", bytes([0, *range(TRUE, len(WORDS))]))
UNKNOWN = -1
BLOCK = 4096  # random numbers drawn at a time
CHANCE = 2**20  # range of the random sort keys of an order
# A value is two bits: whether it may be true, and whether it may be false
IS_TRUE, IS_FALSE, IS_OPEN = np.uint8(1), np.uint8(2), np.uint8(3)
CONSTANT = np.array([{TRUE: IS_TRUE, FALSE: IS_FALSE}.get(i, 0) for i in range(len(WORDS))], "u1")
NEGATED = np.array([0, IS_FALSE, IS_TRUE, IS_OPEN], np.uint8)
VALUE = np.array([UNKNOWN, 1, 0, UNKNOWN])

Tokens = Int[np.ndarray, "batch pos"]
Bits = UInt8[np.ndarray, " n"]
Rows = Int[np.ndarray, " batch"]


def uniform(rng: np.random.Generator) -> Iterator[float]:
    """Yield endless random numbers between 0 and 1, drawn in blocks for speed."""
    while True:
        yield from rng.random(BLOCK).tolist()


def draw_expression(depth: int, dice: Iterator[float]) -> str:
    """Draw a random expression of exactly this depth.

    One side of each operator is one level less deep than the whole. The other side is d levels deep
    with a probability that halves with each level, so that expressions stay short.
    """
    characters: list[str] = []
    _write(depth, dice, characters)
    return "".join(characters)


def shortest(depth: int) -> int:
    """Return the length in characters of the shortest expression of a depth.

    Each level adds two parentheses, an operator and a one-character side.
    """
    return 1 + 4 * depth


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
    """Return the probabilities that the other side is at most 0, 1, … depth − 2 levels deep."""
    weights = 2.0 ** -np.arange(depth)
    chances: list[float] = (weights.cumsum() / weights.sum())[:-1].tolist()
    return chances


def numbered(texts: Sequence[str], first: int) -> Tokens:
    """Return the characters of expressions as numbers, prefixed with `first` and padded."""
    width = max(map(len, texts), default=0)
    written = "".join(text.ljust(width) for text in texts).encode("ascii").translate(NUMBERED)
    tokens = np.frombuffer(written, np.uint8).reshape(len(texts), width)
    return np.pad(tokens.astype(np.int64), ((0, 0), (1, 0)), constant_values=first)


def rewritten(tokens: Tokens, rng: np.random.Generator) -> Tokens:
    """Return the expressions with all constants and operators redrawn with equal probability."""
    other = rng.random(tokens.shape, np.float32) < 0.5
    constant, operator = ((tokens == a) | (tokens == b) for a, b in ((TRUE, FALSE), (AND, OR)))
    redrawn = np.where(constant, TRUE + other, np.where(operator, AND + other, tokens))
    return redrawn


def check(text: str) -> None:
    """Check that a text is an expression.

    Raises:
        ValueError: The text does not parse; the message gives the position.
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
    """Return how many parentheses enclose each character; a '(' counts as enclosed by itself."""
    return ((tokens == OPEN).astype(np.int64) - (tokens == CLOSE)).cumsum(1)


def truth_of(tokens: Tokens, levels: int | None = None) -> Rows:
    """Return the value of each expression: 1, 0, or −1 if its outermost `levels` leave it open.

    Without `levels`, the whole expression is evaluated. One pass over the characters keeps three
    things for each open parenthesis: the value of the finished terms of |, the value of the current
    term, and whether a ! applies to the next value.
    """
    level = nesting(tokens)
    deepest = int(level.max(initial=0))
    seen = deepest if levels is None else levels
    done = np.full((deepest + 2, len(tokens)), IS_FALSE)
    term, negated = np.full_like(done, IS_TRUE), np.zeros_like(done, bool)
    columns, levels_of = (np.ascontiguousarray(x.T, np.int8) for x in (tokens, level))
    for symbol, here in zip(columns, levels_of, strict=True):
        rows = np.flatnonzero(symbol == OPEN)
        now = (here[rows], rows)
        done[now], term[now], negated[now] = IS_FALSE, IS_TRUE, False
        rows = np.flatnonzero(symbol == NOT)
        negated[here[rows], rows] ^= True
        rows = np.flatnonzero(symbol == OR)
        now = (here[rows], rows)
        done[now], term[now] = _either(done[now], term[now]), IS_TRUE
        rows = np.flatnonzero((symbol == TRUE) | (symbol == FALSE) | (symbol == CLOSE))
        now, inner = (here[rows], rows), (here[rows] + 1, rows)
        value = np.where(here[rows] > seen, IS_OPEN, CONSTANT[symbol[rows]])
        within = _either(done[inner], term[inner])
        value = np.where(symbol[rows] == CLOSE, within, value)
        value = np.where(negated[now], NEGATED[value], value)
        negated[now] = False
        term[now] = _both(term[now], value)
    return VALUE[_either(done[0], term[0])]


def _either(one: Bits, other: Bits) -> Bits:
    return (one | other) & IS_TRUE | one & other & IS_FALSE


def _both(one: Bits, other: Bits) -> Bits:
    return one & other & IS_TRUE | (one | other) & IS_FALSE


def neighbouring_values(tokens: Tokens) -> Int[np.ndarray, "batch pair"]:
    """Count how often each pair of characters stands side by side."""
    pairs = tokens[:, :-1] * len(WORDS) + tokens[:, 1:]
    kinds = len(WORDS) ** 2
    each = np.arange(len(tokens))[:, None] * kinds + pairs
    return np.bincount(each.reshape(-1), minlength=len(tokens) * kinds).reshape(-1, kinds)


def twins(
    tokens: Tokens, held: int, rng: np.random.Generator, tries: int
) -> tuple[Tokens, Bool[np.ndarray, " batch"]]:
    """Return a twin of each expression: the opposite value, the same characters on every level.

    A twin also has the same pairs of neighbours: constants swap places only with constants that
    stand between the same two characters, and likewise operators. Parentheses, negations and the
    outermost `held` levels stay. The mask is False for expressions that have no such twin, or for
    which none was found in `tries` random orders.
    """
    level = nesting(tokens)
    found = np.zeros(len(tokens), bool)
    result, walk, value = tokens.copy(), tokens.copy(), truth_of(tokens)
    for _ in range(tries):
        rows = np.flatnonzero(~found)
        tried = walk[rows]
        for kind in ((TRUE, FALSE), (AND, OR)):
            moves = ((tried == kind[0]) | (tried == kind[1])) & (level[rows] > held)
            tried = _reordered(tried, level[rows], moves, rng)
        moved = np.flatnonzero((tried != walk[rows]).any(1))
        rows, tried = rows[moved], tried[moved]
        walk[rows] = tried
        other = truth_of(tried) != value[rows]
        result[rows[other]] = tried[other]
        found[rows[other]] = True
    return result, found


def _reordered(
    tokens: Tokens, level: Tokens, moves: Bool[np.ndarray, "batch pos"], rng: np.random.Generator
) -> Tokens:
    """Permute the characters marked by `moves` among those with equal row, level and neighbours.

    No two marked characters may be adjacent.
    """
    row, at = np.nonzero(moves)
    left, right = tokens[row, at - 1], tokens[row, (at + 1) % tokens.shape[1]]
    group = row * (level.max(initial=0) + 1) + level[row, at]
    group = (group * len(WORDS) + left) * len(WORDS) + right
    home = group.argsort(kind="stable")
    order = (group * CHANCE + rng.integers(CHANCE, size=len(group))).argsort(kind="stable")
    result = tokens.copy()
    result[row[home], at[home]] = tokens[row[order], at[order]]
    return result
