"""Parses a typed ProsQA question into a graph."""

import re

from workbench.tasks.worded.prosqa.concept_graph import Graph, children, distances, parents
from workbench.tasks.worded.prosqa.parsing import ASKED, FACT

ARROWS = re.compile(r"\?\s*(\S+)\s+(\S+)\s+(\S+)\s*$")


def read_question(text: str) -> Graph:
    """Parse a question in either wording into a graph.

    Raises:
        ValueError: The text contains no question, a fact does not parse, or the facts do not
            determine which of the two concepts is right.
    """
    facts, asked = _arrows(text) if ARROWS.search(text) else _sentences(text)
    who, one, other = asked
    names = tuple(dict.fromkeys([name for fact in facts for name in fact]))
    for name in asked:
        if name not in names:
            raise ValueError(f"the question asks about {name!r}, of whom the facts say nothing")
    number = {name: index for index, name in enumerate(names)}
    edges = tuple((number[a], number[b]) for a, b in facts)
    root, first, second = (number[name] for name in asked)
    graph = Graph(names, edges, root, root, first, second, True)
    reached = distances(root, children(graph))
    if (first in reached) == (second in reached):
        both = "both" if first in reached else "neither"
        raise ValueError(f"by the facts {who} is {both} of {one} and {other}; one should be right")
    target, wrong = (first, second) if first in reached else (second, first)
    others = graph.people & distances(wrong, parents(graph)).keys()
    others -= distances(target, parents(graph)).keys()
    return Graph(names, edges, root, min(others, default=root), target, wrong, target == first)


def _sentences(text: str) -> tuple[list[tuple[str, str]], tuple[str, str, str]]:
    plain = " ".join(text.replace(" .", ".").replace(" ?", "?").split())
    if not plain.endswith("?"):
        raise ValueError("the question has no question mark at its end")
    *stated, last = plain.removesuffix("?").split(". ")
    asked = ASKED.fullmatch(last)
    if not asked:
        raise ValueError(f"the question ends in {last!r}, not in Is … a … or …?")
    facts = []
    for sentence in stated:
        fact = FACT.fullmatch(sentence)
        if not fact:
            raise ValueError(f"{sentence!r} does not say what something is")
        facts.append((fact[1], fact[2]))
    return facts, (asked[1], asked[2], asked[3])


def _arrows(text: str) -> tuple[list[tuple[str, str]], tuple[str, str, str]]:
    stated, _, asked = text.rpartition("?")
    who, one, other = asked.split()
    facts = []
    for fact in stated.split("."):
        pair = fact.split()
        if pair and len(pair) != 2:
            raise ValueError(
                f"{fact.strip()!r} does not name two words; a fact is like 'Tom lorpus .'"
            )
        if pair:
            facts.append((pair[0], pair[1]))
    return facts, (who, one, other)
