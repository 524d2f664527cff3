"""Facts on a family, in words: parsing, solving, and the words for numbers of generations.

A relation is a number of generations: "Ada is the parent of Ben ." puts Ada one generation above
Ben, a child is one below, a sibling is on the same level. Relations compose by addition, as in VCoT
(Chen 2026): a parent's parent is 2 above, and a parent's child is a "sibling". So is a child's
other parent, who would not be a sibling in a real family; see `kin`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from workbench.settings.config import nearest

FURTHEST = 12  # largest number of generations that has a word

SPECIALS = ("<pad>", "<cls>", "<sep>")
NAMES = (
    *("Ada", "Ben", "Cora", "Dan", "Ella", "Finn", "Gwen", "Hugo", "Ida", "Jon"),
    *("Kim", "Lars", "Maya", "Noah", "Oda", "Per", "Ruth", "Sven", "Tess", "Uma"),
)
UP = ("parent", "grandparent", *(f"ancestor{n}" for n in range(3, FURTHEST + 1)))
DOWN = ("child", "grandchild", *(f"descendant{n}" for n in range(3, FURTHEST + 1)))
RELATIONS = (*reversed(DOWN), "sibling", *UP)  # by generations, from 12 below to 12 above
FUNCTION_WORDS = ("is", "the", "of", ".", "query", ":")
WORDS = (*SPECIALS, *NAMES, *RELATIONS, *FUNCTION_WORDS)

GENERATIONS = {word: n - FURTHEST for n, word in enumerate(RELATIONS)}
A_FACT = "a fact reads like 'Ada is the parent of Ben .'"
A_QUERY = "a question ends like 'query : Ada is the grandparent of Cora'"


class Fact(NamedTuple):
    """States that `one` is `generations` generations above `other`."""

    one: str
    generations: int
    other: str


class Relation(NamedTuple):
    """Relation of two people according to the facts."""

    generations: int
    steps: int
    """Number of facts on the shortest path between them."""


def _relatives(facts: Sequence[Fact]) -> dict[str, list[tuple[str, int]]]:
    """Return each person's direct relatives, and how many generations above the person they are."""
    beside: dict[str, list[tuple[str, int]]] = {}
    for fact in facts:
        beside.setdefault(fact.one, []).append((fact.other, -fact.generations))
        beside.setdefault(fact.other, []).append((fact.one, fact.generations))
    return beside


def kinship(facts: Sequence[Fact], one: str, other: str) -> Relation:
    """Return how many generations `one` is above `other`, by breadth-first search over the facts.

    Raises:
        ValueError: The facts do not connect the two people, or facts on people connected with
            `one` contradict each other. Contradictions among unconnected people are ignored.
    """
    beside = _relatives(facts)
    found = {one: Relation(0, 0)}
    queue = [one]
    for person in queue:  # grows as people are found
        generations, steps = found[person]
        for relative, above in beside.get(person, []):
            if relative not in found:
                found[relative] = Relation(generations + above, steps + 1)
                queue.append(relative)
            elif found[relative].generations != generations + above:
                raise ValueError(f"the facts contradict each other on {person} and {relative}")
    if other not in found:
        raise ValueError(f"no facts lead from {one} to {other}; each must be related to the next")
    return Relation(-found[other].generations, found[other].steps)


def way(facts: Sequence[Fact], one: str, other: str) -> list[int]:
    """Return how many generations each fact on a shortest path from `one` to `other` goes up.

    Raises:
        ValueError: The facts do not connect the two people.
    """
    beside = _relatives(facts)
    found: dict[str, list[int]] = {one: []}
    queue = [one]
    for person in queue:  # grows as people are found
        for relative, above in beside.get(person, []):
            if relative not in found:
                found[relative] = [*found[person], above]
                queue.append(relative)
    if other not in found:
        raise ValueError(f"no facts lead from {one} to {other}; each must be related to the next")
    return found[other]


KIN = ("line", "siblings", "collateral", "no kin")


def kin(steps: Sequence[int]) -> str:
    """Return how the two ends of a path of parent and child steps are related; one of `KIN`.

    Args:
        steps: How many generations each step goes up.
    """
    if any(a < 0 < b for a, b in pairwise(steps)):
        return "no kin"
    if min(steps) > 0 or max(steps) < 0:
        return "line"
    return "siblings" if list(steps) == [1, -1] else "collateral"


def solve(facts: Sequence[Fact], query: Fact) -> bool:
    """Return whether the query follows from the facts.

    Raises:
        ValueError: The facts do not relate the two people in the query, or contradict each other.
    """
    return kinship(facts, query.one, query.other).generations == query.generations


def read_facts(text: str) -> tuple[list[Fact], Fact]:
    """Parse a text such as "Ada is the parent of Ben . query : Ben is the child of …".

    Raises:
        ValueError: The text is empty, has an unknown name, relation or other word, a malformed
            fact or no query, or its query names people whom no fact mentions; or a sentence names
            one person twice.
    """
    words = text.replace(".", " . ").replace(":", " : ").split()
    if not words:
        raise ValueError(f"the question is empty; {A_QUERY}")
    *told, asked = " ".join(words).split(" . ")
    if not asked.startswith("query :"):
        raise ValueError(f"there is no query at the end; {A_QUERY}")
    facts = [_fact(sentence, A_FACT) for sentence in told]
    query = _fact(asked.removeprefix("query :").removesuffix(" ."), A_QUERY)
    mentioned = {name for fact in facts for name in (fact.one, fact.other)}
    for name in (query.one, query.other):
        if name not in mentioned:
            raise ValueError(f"no fact mentions {name}; {nearest(name, mentioned)}")
    return facts, query


def _fact(sentence: str, form: str) -> Fact:
    words = sentence.split()
    if len(words) != 6 or (words[1], words[2], words[4]) != ("is", "the", "of"):
        unknown = [word for word in words if word not in WORDS]
        why = f"unknown word {unknown[0]!r} in {sentence!r}" if unknown else f"{sentence!r} is none"
        raise ValueError(f"{why}; {form}")
    one, _, _, relation, _, other = words
    for name in (one, other):
        if name not in NAMES:
            raise ValueError(f"unknown name {name!r}; {nearest(name, NAMES)}")
    if relation not in GENERATIONS:
        raise ValueError(f"unknown relation {relation!r}; {nearest(relation, RELATIONS)}")
    if one == other:
        raise ValueError(f"{sentence!r} is about one person twice; {form}")
    return Fact(one, GENERATIONS[relation], other)
