"""Writes ProsQA questions from graphs, in two wordings, and reads them from the official files.

    sentences   the official wording: "Tom is a lorpus.", "Every lorpus is a zumpus.", with the
                question "Is Tom a zumpus or rompus?"; the answer is "Tom is a zumpus."
    arrows      for small machines, three tokens per edge: "Tom lorpus ." and "lorpus zumpus .",
                with the question "? Tom zumpus rompus"; the answer is "zumpus"

The steps are the edges of a shortest path from root to target, worded like those of the question.
"""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.settings.config import nearest
from workbench.tasks.worded.problem import Problem, ProblemError, read_rows, texts_of, value_of
from workbench.tasks.worded.prosqa.concept_graph import (
    Edge,
    Graph,
    distances,
    parents,
    shortest_path,
)

WORDINGS = ("sentences", "arrows")
FACT = re.compile(r"(?:Every )?(\S+) is an? (\S+)")
ASKED = re.compile(r"Is (\S+) an? (\S+) or (?:an? )?(\S+)")
WORD = re.compile(r"[.?]|[^\s.?]+")


def words(text: str) -> list[str]:
    """Split a text in either wording into words; periods and question marks are words too."""
    return WORD.findall(text)


def prosqa_problem(graph: Graph, wording: str = "sentences") -> Problem:
    """Write a graph as a question with steps and answer.

    Raises:
        ProblemError: There is no such wording.
    """
    if wording not in WORDINGS:
        raise ProblemError(f"no wording {wording!r}; {nearest(wording, ('sentences', 'arrows'))}")
    path = shortest_path(graph)
    say = _sentence if wording == "sentences" else _arrow
    people = graph.people
    who, target = graph.names[graph.root], graph.names[graph.target]
    one, other = options(graph)
    asked = f"Is {who} a {one} or {other}?" if wording == "sentences" else f"? {who} {one} {other}"
    return Problem(
        question=" ".join([*(say(graph, edge, people) for edge in graph.edges), asked]),
        steps=tuple(say(graph, edge, people) for edge in itertools.pairwise(path)),
        answer=f"{who} is a {target}." if wording == "sentences" else target,
        facts={"graph": graph, "hops": len(path) - 1},
    )


def options(graph: Graph) -> tuple[str, str]:
    """Return the two concepts of the question, in its order."""
    target, wrong = graph.names[graph.target], graph.names[graph.wrong]
    return (target, wrong) if graph.target_first else (wrong, target)


def _sentence(graph: Graph, edge: Edge, people: frozenset[int]) -> str:
    a, b = (graph.names[node] for node in edge)
    return f"{a} is a {b}." if edge[0] in people else f"Every {a} is a {b}."


def _arrow(graph: Graph, edge: Edge, people: frozenset[int]) -> str:
    a, b = (graph.names[node] for node in edge)
    return f"{a} {b} ."


def step_words(graph: Graph, edge: Edge, wording: str) -> str:
    """Return the words that state an edge, without the period; it need not be in the graph."""
    say = _sentence if wording == "sentences" else _arrow
    return say(graph, edge, graph.people).removesuffix(".").rstrip()


def load_prosqa(path: Path) -> list[Problem]:
    """Read the questions of an official file in their original wording.

    `facts` holds the graph, the hops, and the file's neighbor_k (None if absent).

    Raises:
        ProblemError: The file or a row is malformed; the message names both.
        FileError: The file is missing or not a text file.
    """
    return [prosqa_row(row, where) for where, row in read_rows(path)]


def prosqa_row(row: Mapping[str, Any], where: str) -> Problem:
    """Convert one row of an official file to a problem; `where` names the row in errors.

    Raises:
        ProblemError: A field is missing or contradicts another.
    """
    question, answer = (value_of(row, name, str, where) for name in ("question", "answer"))
    steps = texts_of(row, "steps", where)
    if not steps:
        raise ProblemError(f"{where}: steps is empty; it should hold a sentence for each hop")
    if not question.rstrip().endswith("?"):
        raise ProblemError(f"{where}: the question has no question mark at its end")
    graph = _graph(row, question, where)
    _check_answer(graph, answer, where)
    return Problem(
        question,
        steps,
        answer,
        {"graph": graph, "hops": graph.hops, "neighbor_k": _neighbor_k(row, graph, where)},
    )


def _graph(row: Mapping[str, Any], question: str, where: str) -> Graph:
    """Parse the graph of a row, with edges and options in the order of its question."""
    names = texts_of(row, "idx_to_symbol", where)
    if len(set(names)) < len(names):
        raise ProblemError(f"{where}: idx_to_symbol names two nodes alike")
    root, target, wrong = (
        _node(value_of(row, name, int, where), name, names, where)
        for name in ("root", "target", "neg_target")
    )
    *stated, last = question.rstrip().removesuffix("?").split(". ")
    asked = ASKED.fullmatch(last)
    if not asked:
        raise ProblemError(f"{where}: the question ends in {last!r}, not in Is … a … or …?")
    who, *two = asked.groups()
    if who != names[root] or set(two) != {names[target], names[wrong]}:
        raise ProblemError(
            f"{where}: the question asks about {who}, {two[0]} and {two[1]}, but root, target and "
            f"neg_target are {names[root]}, {names[target]} and {names[wrong]}"
        )
    edges = _edges(row, stated, names, where)
    graph = Graph(names, edges, root, root, target, wrong, two[0] == names[target])
    above = {node: distances(node, parents(graph)) for node in (target, wrong)}
    if root not in above[target]:
        raise ProblemError(f"{where}: no edges lead from {who} to the target {names[target]}")
    if root in above[wrong]:
        raise ProblemError(f"{where}: edges lead from {who} to the wrong concept {names[wrong]}")
    return _with_other_root(graph, above, where)


def _with_other_root(graph: Graph, above: Mapping[int, dict[int, int]], where: str) -> Graph:
    """Set the other root: the first person that leads to the wrong concept but not the target."""
    others = (graph.people & above[graph.wrong].keys()) - above[graph.target].keys()
    others -= {graph.wrong}
    if not others:
        wrong, target = graph.names[graph.wrong], graph.names[graph.target]
        raise ProblemError(f"{where}: nobody is a {wrong} without being a {target} too")
    return Graph(**{**vars(graph), "other_root": min(others)})


def _edges(
    row: Mapping[str, Any], stated: list[str], names: tuple[str, ...], where: str
) -> tuple[Edge, ...]:
    """Return the edges of a row in the order of its question, which must state exactly these."""
    pairs = value_of(row, "edges", list, where)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ProblemError(f"{where}: edges should be a list of pairs; it is {pairs!r:.60}")
    given = {(_node(a, "edges", names, where), _node(b, "edges", names, where)) for a, b in pairs}
    place = {name: node for node, name in enumerate(names)}
    read: list[Edge] = []
    for sentence in stated:
        fact = FACT.fullmatch(sentence)
        if not fact or not set(fact.groups()) <= place.keys():
            raise ProblemError(f"{where}: {sentence!r} does not say what some node is")
        read.append((place[fact[1]], place[fact[2]]))
    if set(read) != given:
        raise ProblemError(
            f"{where}: the question states {len(set(read) - given)} facts that are no edges, and "
            f"{len(given - set(read))} edges are not stated"
        )
    return tuple(read)


def _node(value: Any, field: str, names: tuple[str, ...], where: str) -> int:
    if type(value) is not int or not 0 <= value < len(names):
        raise ProblemError(
            f"{where}: {field} holds {value!r}, which is no index of the {len(names)} names in "
            "idx_to_symbol"
        )
    return value


def _check_answer(graph: Graph, answer: str, where: str) -> None:
    said = words(answer)
    concept = said[-2] if len(said) > 1 and said[-1] == "." else said[-1]
    if concept not in options(graph):
        one, other = options(graph)
        raise ProblemError(f"{where}: the answer {answer!r} is neither {one} nor {other}")
    if concept != graph.names[graph.target]:
        raise ProblemError(
            f"{where}: the answer is {concept}, but the target is {graph.names[graph.target]}"
        )


def _neighbor_k(
    row: Mapping[str, Any], graph: Graph, where: str
) -> tuple[frozenset[int], ...] | None:
    """Return the sets of a row's neighbor_k by number of steps, or None if absent."""
    if "neighbor_k" not in row:
        return None
    sets = value_of(row, "neighbor_k", dict, where)
    if sorted(sets) != sorted(map(str, range(len(sets)))):
        raise ProblemError(f"{where}: neighbor_k should have the keys 0, 1, 2 …; it has {[*sets]}")
    found = []
    for step in range(len(sets)):
        nodes = value_of(sets, str(step), list, f"{where}, neighbor_k")
        found.append(frozenset(_node(node, "neighbor_k", graph.names, where) for node in nodes))
    return tuple(found)
