"""Text form of graphs: `A>B B>C D : A C` lists edges, isolated nodes, and source and target."""

import string

import numpy as np
from jaxtyping import Bool

from workbench.settings.config import nearest

LETTERS = string.ascii_uppercase
FORM = "a question reads like 'A>B B>C D>E : A C'"

OneGraph = Bool[np.ndarray, "node node"]


def parse_graph(text: str, most: int) -> tuple[list[str], OneGraph, int, int]:
    """Return the node names in order of first mention, the edges, the source and the target.

    Raises:
        ValueError: The text is not a graph of at most `most` lettered nodes with such a pair.
    """
    if not text.strip():
        raise ValueError(f"the question is empty; {FORM}")
    graph, colon, asked = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} asks about no nodes; {FORM}")
    pairs = [_edge(word) for word in graph.split() if ">" in word]
    names = list(dict.fromkeys(_node(n) for word in graph.split() for n in word.split(">")))
    if not pairs:
        raise ValueError(f"{text!r} has no edges; {FORM}")
    if len(names) > most:
        raise ValueError(f"the graph has {len(names)} nodes; there may be at most {most}")
    source, target = _asked(asked, names)
    edges = np.zeros((len(names), len(names)), dtype=bool)
    for first, second in pairs:
        edges[names.index(first), names.index(second)] = True
    return names, edges, names.index(source), names.index(target)


def write_graph(names: list[str], edges: OneGraph, source: int, target: int) -> str:
    """Write a graph in the form that `parse_graph` reads."""
    words = [f"{names[first]}>{names[second]}" for first, second in np.argwhere(edges)]
    lone = np.flatnonzero(~(edges.any(0) | edges.any(1)))
    words += [names[node] for node in lone]
    return f"{' '.join(words)} : {names[source]} {names[target]}"


def _edge(word: str) -> tuple[str, str]:
    ends = word.split(">")
    if len(ends) != 2 or not all(ends):
        raise ValueError(f"{word!r} is no edge; an edge reads like 'A>B'")
    if ends[0] == ends[1]:
        raise ValueError(f"{word!r} leads from a node to itself; an edge joins two nodes")
    return ends[0], ends[1]


def _node(name: str) -> str:
    if len(name) != 1 or name not in LETTERS:
        raise ValueError(f"unknown node {name!r}; {nearest(name.upper()[:1], LETTERS)}")
    return name


def _asked(text: str, names: list[str]) -> tuple[str, str]:
    words = text.split()
    if len(words) != 2:
        raise ValueError(f"{text.strip()!r} names {len(words)} nodes; a question asks about two")
    for name in words:
        if _node(name) not in names:
            raise ValueError(f"node {name} is not in the graph, which has {', '.join(names)}")
    if words[0] == words[1]:
        raise ValueError(f"{words[0]} is both source and target; a question asks about two nodes")
    return words[0], words[1]
