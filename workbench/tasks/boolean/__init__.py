"""Nested Boolean expressions, true or false: the second experiment of VCoT (Chen 2026).

    paper     drawn as published. About half of the expressions are true, and their length, their
              character counts and, above all, their outermost parentheses give the value away.
              Three levels determine the value of about four in five expressions at any depth.
    matched   each expression is followed by a twin with the opposite value that has the same
              characters on every level, the same pairs of neighbouring characters, and the same
              outer half, up to `HELD` levels. A guess that counts characters or pairs of them, or
              reads only these levels, is right in half of the rows at every depth and length. The
              twins differ in which constants and operators stand in which subexpression.

There are few expressions of depth 1 (576 as published), so the train split may repeat rows, as in
the paper. Rows of valid and test are all different, and each occurs in one split only. At depth 1
only 12 expressions have a twin, so the matched train split repeats these, and valid and test can
hold at most 12 rows of that depth. Expressions longer than the limit are rejected, so the deepest
ones are more compact than the grammar alone would make them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from pydantic import model_validator

from workbench.registries import TASKS
from workbench.tasks.batch import Batch, DeepBatch
from workbench.tasks.boolean.expressions import (
    AND,
    CLOSE,
    FALSE,
    NOT,
    OPEN,
    OR,
    TRUE,
    WORDS,
    check,
    draw_expression,
    nesting,
    numbered,
    rewritten,
    shortest,
    truth_of,
    twins,
    uniform,
)
from workbench.tasks.deep import (
    SPLITS,
    DeepConfig,
    DeepTask,
    Rows,
    Table,
    Tokens,
    deep_batch,
    widened,
)
from workbench.words.vocabulary import WordVocabulary

CLS = 1
HELD = 3  # most outer levels that twins share; with more, twins become rare
TRIES = 3  # random orders tried to find a twin
WRITINGS = 4  # sets of constants and operators tried in an expression until it has a twin
SURPLUS = 8  # expressions drawn per pair of twins, until the share with a twin is known
MOST = 20_000  # expressions drawn at a time
PATIENCE = 20  # fruitless draws in a row before giving up


class BooleanConfig(DeepConfig):
    """Sizes of the Boolean task; the defaults are the paper's, which has no valid split."""

    train_depths: list[int] = [1, 2, 3, 4, 5, 6, 7, 8]
    valid_depths: list[int] = [2, 4, 6, 8]
    test_depths: list[int] = [2, 4, 6, 8, 10, 12, 14]
    n_train: int = 8_000  # rows per depth, like n_valid and n_test
    n_valid: int = 250
    n_test: int = 500

    @model_validator(mode="after")
    def _check_room(self) -> "BooleanConfig":
        deepest = max(self.train_depths + self.valid_depths + self.test_depths)
        if shortest(deepest) > self.max_length - 1:  # <cls> takes one
            raise ValueError(
                f"depth {deepest} takes {shortest(deepest)} characters at least; max_length="
                f"{self.max_length} holds {self.max_length - 1}"
            )
        return self


class Characters(WordVocabulary):
    """Vocabulary whose words are single characters, written without spaces."""

    def encode(self, text: str) -> list[int]:
        written = "".join(text.split())
        if not written:
            raise ValueError("the expression is empty; an expression reads like '!(T&F)|T'")
        for character in written:
            if character not in self.ids:
                raise ValueError(
                    f"unknown character {character!r}; an expression has T F & | ! ( )"
                )
        return [self.ids[character] for character in written]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the characters of token ids, without padding and <cls>."""
        return "".join(self.words[token] for token in tokens if token > CLS)


class Drawn(NamedTuple):
    """Rows of one depth."""

    tokens: Tokens
    value: Rows


@TASKS.register(
    "boolean", example={"n_train": 9, "n_valid": 4, "n_test": 6, "test_depths": [2, 5, 9]}
)
class Boolean(DeepTask):
    """Expressions of T, F, !, & and | in parentheses, to be evaluated."""

    Config = BooleanConfig
    perception = "expression"
    no_and_yes = ("False", "True")

    def __init__(self, cfg: BooleanConfig, seed: int) -> None:
        super().__init__(cfg, seed)
        self.vocabulary = Characters(WORDS)

    @cached_property
    def splits(self) -> Mapping[str, DeepBatch]:
        taken: set[bytes] = set()  # the train split is drawn last because it may repeat rows
        drawn = {split: self._draw_split(split, taken) for split in reversed(SPLITS)}
        return {split: drawn[split] for split in SPLITS}

    def question(self, text: str) -> DeepBatch:
        tokens = np.array([[CLS, *self.vocabulary.encode(text)]])
        check("".join(text.split()))
        self._check_length(tokens.shape[1])
        return self._batch(Drawn(tokens, truth_of(tokens)))

    def local_features(self, batch: Batch) -> dict[str, Num[np.ndarray, " batch"]]:
        """Return length, character counts (whole and outermost level), ends and neighbour pairs.

        No feature looks at more than two characters at once or evaluates anything.
        """
        tokens, level = batch.tokens.numpy(), nesting(batch.tokens.numpy())
        counts = {
            f"number of {WORDS[symbol]}": (tokens == symbol).sum(1)
            for symbol in (TRUE, FALSE, AND, OR, NOT, OPEN)
        }
        outer = {
            f"number of {WORDS[symbol]} on the outermost level": (
                (tokens == symbol) & (level == 1)
            ).sum(1)
            for symbol in (TRUE, FALSE, AND, OR, NOT)
        }
        beside = {
            f"number of {WORDS[one]}{WORDS[two]}": _count_pairs(tokens, one, two)
            for constant in (TRUE, FALSE)
            for operator in (AND, OR)
            for one, two in ((constant, operator), (operator, constant))
        } | {f"number of !{WORDS[two]}": _count_pairs(tokens, NOT, two) for two in (TRUE, FALSE)}
        last = np.take_along_axis(tokens, batch.length.numpy()[:, None] - 1, 1)[:, 0]
        edges = {
            "begins with !": (tokens[:, 1] == NOT).astype(np.int64),
            "begins with (": (tokens[:, 1] == OPEN).astype(np.int64),
            "ends with )": (last == CLOSE).astype(np.int64),
        }
        return {"length": batch.length.numpy(), **counts, **edges, **outer, **beside}

    def guesses(self, batch: Batch) -> dict[str, Rows]:
        """Return answers guessed from the character counts, and from the outermost levels alone.

        The outer levels give the value if they determine it whatever stands further in. They are
        never more than half of an expression's levels.
        """
        views: dict[str, Callable[[Batch], Rows]] = {
            "outermost level": lambda rows: _value_of_outer(rows, 1),
            f"outer half, at most {HELD} levels": lambda rows: _value_of_outer(rows, HELD),
        }
        train = self.splits["train"]
        answer = train.answer.numpy()
        guesses = {"counts of characters": (_counts(batch) @ self._weights > 0).astype(np.int64)}
        for view, look in views.items():
            table = Table(look(train)[:, None], answer, self._usual)
            guesses[view] = table(look(batch)[:, None])
        return guesses

    @cached_property
    def _weights(self) -> Float[np.ndarray, " feature"]:
        """Weights of a linear rule on the counts, fitted by least squares."""
        train = self.splits["train"]
        signs = 2.0 * train.answer.numpy() - 1
        weights: Float[np.ndarray, " feature"] = np.linalg.lstsq(_counts(train), signs)[0]
        return weights

    def _draw_split(self, split: str, taken: set[bytes]) -> DeepBatch:
        parts = []
        for depth, n in self.cfg.rows(split).items():
            dice = uniform(np.random.default_rng([self.seed, SPLITS.index(split), depth]))
            tokens, value = self._draw(depth, n, dice, taken, split == "train")
            parts.append(self._batch(Drawn(widened(tokens, self.cfg.max_length), value)))
        return Batch.cat(parts).trimmed()

    def _draw(
        self, depth: int, n: int, dice: Iterator[float], taken: set[bytes], repeats: bool
    ) -> Drawn:
        """Draw rows of one depth that are not in `taken`; add them to it unless `repeats`."""
        rng = np.random.default_rng([self.seed, len(SPLITS), depth, int(next(dice) * 2**32)])
        matched = self.cfg.version == "matched"
        size, surplus = (2, SURPLUS) if matched else (1, 1)
        kept: list[Tokens] = []
        missing, fruitless = -(-n // size), 0
        while missing:
            n_drawn = min(surplus * missing + 64, MOST)
            fresh = []
            for rows in self._candidates(depth, n_drawn, dice, rng):
                names = {row.tobytes().rstrip(b"\0") for row in rows.astype(np.uint8)}
                if not names & taken:
                    fresh.append(rows)
                    taken |= set() if repeats else names
                if len(fresh) == missing:
                    break
            if fresh and matched:
                surplus = -(-n_drawn // len(fresh))
                if depth == 1 and repeats:  # one draw finds all of the few twins of depth 1
                    fresh = [fresh[i] for i in rng.integers(len(fresh), size=missing)]
            kept += fresh
            missing -= len(fresh)
            fruitless = 0 if fresh else fruitless + 1
            if fruitless == PATIENCE:
                raise ValueError(
                    f"{n} different expressions of depth {depth} and at most "
                    f"{self.cfg.max_length} tokens are asked for, but only "
                    f"{size * len(kept)} were found"
                )
        width = max(rows.shape[1] for rows in kept)
        tokens = np.concatenate([widened(rows, width) for rows in kept])[:n]
        return Drawn(tokens, truth_of(tokens))

    def _candidates(
        self, depth: int, n: int, dice: Iterator[float], rng: np.random.Generator
    ) -> list[Tokens]:
        """Draw single expressions, or pairs of twins.

        These are fewer than `n`, because many expressions are too long or have no twin.
        """
        written = (draw_expression(depth, dice) for _ in range(n))
        tokens = numbered([text for text in written if len(text) < self.cfg.max_length], CLS)
        if self.cfg.version == "paper":
            return list(tokens[:, None])
        held = min(depth // 2, HELD)
        pairs: list[Tokens] = []
        for _ in range(WRITINGS):
            # if the held levels determine the value, every expression that shares them has it too
            rows = np.flatnonzero(truth_of(tokens, held) < 0)
            others, found = twins(tokens[rows], held, rng, TRIES)
            pairs += list(np.stack((tokens[rows], others), 1)[found])
            tokens = rewritten(np.delete(tokens, rows[found], 0), rng)
        return pairs

    def _batch(self, rows: Drawn) -> DeepBatch:
        tokens = rows.tokens
        depth = nesting(tokens).max(1)
        length = (tokens > 0).sum(1)
        return deep_batch(tokens, length, rows.value, depth)


def _count_pairs(tokens: Tokens, one: int, two: int) -> Rows:
    counts: Rows = ((tokens[:, :-1] == one) & (tokens[:, 1:] == two)).sum(1)
    return counts


def _counts(batch: Batch) -> Float[np.ndarray, "batch feature"]:
    """Count constants and operators, plus the same counts again if the expression begins with !."""
    tokens = batch.tokens.numpy()
    symbols = (TRUE, FALSE, AND, OR, NOT)
    counts = np.stack([np.ones(len(tokens)), *((tokens == s).sum(1) for s in symbols)], 1)
    negated = tokens[:, 1:2] == NOT
    return np.concatenate((counts, counts * negated), 1)


def _value_of_outer(batch: Batch, levels: int) -> Rows:
    """Return the value if the outer levels, at most `levels` and half, determine it; else −1."""
    tokens = batch.tokens.numpy()
    shown = np.minimum(batch.difficulty.numpy() // 2, levels)
    value = np.empty(len(tokens), np.int64)
    for level in np.unique(shown).tolist():
        rows = shown == level
        width = int(batch.length.numpy()[rows].max())
        value[rows] = truth_of(tokens[rows, :width], level)
    return value
