"""Kinship stories as arrays: chains of facts with distractors, and their conversion to tokens.

A fact is three numbers: a person, how many generations above, the other person. In a chain of depth
K, the first u facts call each person the parent of the next, and the other K − u facts call each
person the child of the next. The chain goes down to a common descendant and up again, and its first
person is 2u − K generations above its last. In the version `family` the child facts come first, so
that the chain turns at a common ancestor. A sentence takes seven tokens, the question at the end
nine.
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.tasks.batch import NONE
from workbench.tasks.kinship.people import FURTHEST, NAMES, WORDS

SENTENCE = 7
QUESTION = 9
TOKEN = {word: token for token, word in enumerate(WORDS)}
FIRST_NAME = TOKEN[NAMES[0]]
SAME_GENERATION = TOKEN["sibling"]
UP, DOWN = 1, -1
LIES = np.array([-4, -2, 2, 4])  # how many generations a false query is off
DISTRACTORS = (2, 3, 4)  # as published
SECOND_CHAINS = (3, 4, 5)  # possible numbers of facts in the distractor chain
SIBLINGS = (0, 1, 2)

StoryFacts = Int[np.ndarray, "batch fact 3"]
Rows = Int[np.ndarray, " batch"]


class Stories(NamedTuple):
    """Facts of each row, followed by padding; the queries and their answers."""

    facts: StoryFacts
    n_facts: Rows
    query: Int[np.ndarray, "batch 3"]
    answer: Rows


class Halves(NamedTuple):
    """Number of parent facts in both chains, for a true story and its false counterpart."""

    chain: tuple[int, int]
    second: tuple[int, int]


def fits(depth: int, version: Literal["paper", "family", "matched"], max_length: int) -> bool:
    """Return whether there are enough people and tokens for stories of this depth."""
    return bool(
        _shapes(depth, max_length) if version == "matched" else _distractors(depth, max_length)
    )


def _length(n_facts: int) -> int:
    return 1 + SENTENCE * n_facts + QUESTION


@cache
def _distractors(depth: int, max_length: int) -> list[int]:
    """Return the numbers of distractors that a story of this depth has room for."""
    if depth + 3 > len(NAMES):
        return []
    return [n for n in DISTRACTORS if _length(depth + n) <= max_length]


@cache
def _shapes(depth: int, max_length: int) -> list[tuple[int, int]]:
    """Return the possible pairs (facts in the second chain, pairs of siblings) that fit."""
    return [
        (second, siblings)
        for second in SECOND_CHAINS
        for siblings in SIBLINGS
        if depth + 1 + second + 1 + 2 * siblings <= len(NAMES)
        and _length(depth + second + siblings) <= max_length
    ]


@cache
def _halves(depth: int, second: int) -> list[Halves]:
    """Return all ways in which a true story and a false one name each relation equally often.

    From depth 3, the first chain begins with a parent and ends with a child in both stories, as the
    second chain always does.
    """
    ups = range(depth + 1) if depth < 3 else range(1, depth)
    second_ups = range(1, second)
    return [
        Halves((up, lie), (other, other + up - lie))
        for up in ups
        for lie in ups
        for other in second_ups
        if 2 * (lie - up) in LIES and other + up - lie in second_ups
    ]


def _people(n: int, rng: np.random.Generator) -> Int[np.ndarray, "batch person"]:
    """Return all people in `n` random orders."""
    return rng.random((n, len(NAMES))).argsort(1)


def _chain(
    people: Int[np.ndarray, "batch person"], ups: Rows, parents_first: bool = True
) -> StoryFacts:
    """Build the facts from each person to the next: `ups` parent facts, the others child facts."""
    n_facts = people.shape[1] - 1
    steps = np.arange(n_facts)
    if parents_first:
        generations = np.where(steps < ups[:, None], UP, DOWN)
    else:
        generations = np.where(steps < n_facts - ups[:, None], DOWN, UP)
    return np.stack((people[:, :-1], generations, people[:, 1:]), -1)


def paper_stories(depth: int, n: int, max_length: int, rng: np.random.Generator) -> Stories:
    """Draw `n` stories as published; every other one is true."""
    return _told(depth, n, max_length, rng, parents_first=True)


def family_stories(depth: int, n: int, max_length: int, rng: np.random.Generator) -> Stories:
    """Draw `n` stories whose chains turn at a common ancestor; every other one is true."""
    return _told(depth, n, max_length, rng, parents_first=False)


def _told(
    depth: int, n: int, max_length: int, rng: np.random.Generator, parents_first: bool
) -> Stories:
    people = _people(n, rng)
    ups = rng.integers(depth + 1, size=n)
    distractors, there = _strangers(people[:, depth + 1 :], depth, max_length, rng)
    chain = _chain(people[:, : depth + 1], ups, parents_first)
    facts = np.concatenate((chain, distractors), 1)
    there = np.concatenate((np.ones((n, depth), bool), there), 1)
    answer = 1 - np.arange(n) % 2
    generations = 2 * ups - depth
    lies = generations[:, None] + LIES
    chosen = np.where(abs(lies) <= FURTHEST, rng.random(lies.shape), -1).argmax(1)
    asked = np.where(answer == 1, generations, lies[np.arange(n), chosen])
    query = np.stack((people[:, 0], asked, people[:, depth]), 1)
    return _shuffled(facts, there, query, answer, rng.random(there.shape))


def _strangers(
    people: Int[np.ndarray, "batch person"], depth: int, max_length: int, rng: np.random.Generator
) -> tuple[StoryFacts, Bool[np.ndarray, "batch fact"]]:
    """Draw facts among people outside the chain, and a mask of those used; no pair occurs twice."""
    n, n_people = people.shape
    wanted = rng.choice(_distractors(depth, max_length), n)
    most = max(DISTRACTORS)
    one = rng.integers(n_people, size=(n, most))
    other = (one + rng.integers(1, n_people, size=(n, most))) % n_people
    pair = np.minimum(one, other) * n_people + np.maximum(one, other)
    earlier = np.tril(np.ones((most, most), bool), -1)
    again = ((pair[:, :, None] == pair[:, None]) & earlier).any(2)
    rows = np.arange(n)[:, None]
    generations = rng.integers(-1, 2, size=(n, most))
    facts = np.stack((people[rows, one], generations, people[rows, other]), -1)
    return facts, (np.arange(most) < wanted[:, None]) & ~again


def matched_stories(depth: int, n: int, max_length: int, rng: np.random.Generator) -> Stories:
    """Draw `n` stories in pairs that counting cannot tell apart; the first of each pair is true."""
    twos = -(-n // 2)
    shape = rng.integers(len(_shapes(depth, max_length)), size=twos)
    choice = rng.random(twos)
    people = np.repeat(_people(twos, rng), 2, 0)
    longest = depth + max(SECOND_CHAINS) + max(SIBLINGS)
    facts = np.zeros((2 * twos, longest, 3), np.int64)
    there = np.zeros((2 * twos, longest), bool)
    query = np.zeros((2 * twos, 3), np.int64)
    for number, (second, siblings) in enumerate(_shapes(depth, max_length)):
        rows = np.repeat(shape == number, 2)
        ways = np.array(_halves(depth, second))
        ups = ways[(choice[shape == number] * len(ways)).astype(np.int64)]  # [two chain truth]
        own = people[rows]
        parts = (
            _chain(own[:, : depth + 1], ups[:, 0].reshape(-1)),
            _chain(own[:, depth + 1 : depth + second + 2], ups[:, 1].reshape(-1)),
            _siblings(own[:, depth + second + 2 :], siblings),
        )
        n_facts = depth + second + siblings
        facts[rows, :n_facts] = np.concatenate(parts, 1)
        there[rows, :n_facts] = True
        asked = np.repeat(2 * ups[:, 0, 0] - depth, 2)
        query[rows] = np.stack((own[:, 0], asked, own[:, depth]), 1)
    luck = np.repeat(rng.random((twos, longest)), 2, 0)  # both rows of a pair use the same order
    return _shuffled(facts[:n], there[:n], query[:n], 1 - np.arange(n) % 2, luck[:n])


def _siblings(people: Int[np.ndarray, "batch person"], n_pairs: int) -> StoryFacts:
    one, other = people[:, : 2 * n_pairs : 2], people[:, 1 : 2 * n_pairs : 2]
    return np.stack((one, np.zeros_like(one), other), -1)


def _shuffled(
    facts: StoryFacts,
    there: Bool[np.ndarray, "batch fact"],
    query: Int[np.ndarray, "batch 3"],
    answer: Rows,
    luck: Float[np.ndarray, "batch fact"],
) -> Stories:
    """Return the stories with their facts sorted by `luck`, random numbers below 1."""
    order = np.where(there, luck, 2).argsort(1)
    return Stories(np.take_along_axis(facts, order[..., None], 1), there.sum(1), query, answer)


def write(stories: Stories) -> tuple[Int[np.ndarray, "batch pos"], Rows]:
    """Return the tokens of each story, between <cls> and <sep>, and its length."""
    n, most, _ = stories.facts.shape
    sentence = np.array(
        [TOKEN[word] for word in (["Ada", "is", "the", "parent", "of", "Ada", "."])]
    )
    question = np.array(
        [TOKEN[word] for word in ["query", ":", "Ada", "is", "the", "parent", "of", "Ada", "<sep>"]]
    )
    tokens = np.zeros((n, _length(most)), np.int64)
    tokens[:, 0] = TOKEN["<cls>"]
    told = np.tile(sentence, (n, most, 1))
    told[:, :, [0, 3, 5]] = _as_tokens(stories.facts)
    told *= (np.arange(most) < stories.n_facts[:, None])[..., None]
    tokens[:, 1 : 1 + SENTENCE * most] = told.reshape(n, -1)
    asked = np.tile(question, (n, 1))
    asked[:, [2, 5, 7]] = _as_tokens(stories.query)
    starts = 1 + SENTENCE * stories.n_facts
    np.put_along_axis(tokens, starts[:, None] + np.arange(QUESTION), asked, 1)
    return tokens, starts + QUESTION


def _as_tokens(facts: Int[np.ndarray, "*rows 3"]) -> Int[np.ndarray, "*rows 3"]:
    return facts + np.array([FIRST_NAME, SAME_GENERATION, FIRST_NAME])


def parse_story(tokens: Int[np.ndarray, "batch pos"], length: Rows) -> Stories:
    """Recover the stories from the tokens of `write`; −1 for missing facts and for all answers."""
    n_facts = (length - 1 - QUESTION) // SENTENCE
    most = int(n_facts.max(initial=0))
    told = tokens[:, 1 : 1 + SENTENCE * most].reshape(len(tokens), most, SENTENCE)
    starts = 1 + SENTENCE * n_facts
    asked = np.take_along_axis(tokens, starts[:, None] + np.array([2, 5, 7]), 1)
    shift = np.array([FIRST_NAME, SAME_GENERATION, FIRST_NAME])
    there = (np.arange(most) < n_facts[:, None])[..., None]
    facts = np.where(there, told[..., [0, 3, 5]] - shift, NONE)
    return Stories(facts, n_facts, asked - shift, np.full(len(tokens), NONE))
