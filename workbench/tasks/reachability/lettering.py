"""Assigns letters to the nodes of graphs, so that no two questions are the same."""

import numpy as np
from jaxtyping import Int

from workbench.tasks.reachability.graph_text import LETTERS
from workbench.tasks.reachability.graphs import Graphs

RENAMINGS = 100  # rounds of relabelling repeated questions before giving up

Letters = Int[np.ndarray, "graph node"]


def letter(rng: np.random.Generator, graphs: Graphs, seen: set[bytes]) -> Letters:
    """Draw the letter indices of all nodes, random and different within each graph.

    A question that is already in `seen` gets other letters; all questions are added to `seen`.

    Raises:
        ValueError: There are too few different questions.
    """
    wide = graphs.edges.shape[1]
    letters = _draw(rng, len(graphs.nodes), wide)
    wanted = np.arange(len(letters))
    for _ in range(RENAMINGS):
        wanted = wanted[_are_repeated(_keys(graphs[wanted], letters[wanted]), seen)]
        if not len(wanted):
            return letters
        letters[wanted] = _draw(rng, len(wanted), wide)
    raise ValueError(
        f"there are too few graphs of {graphs.nodes.max()} nodes for so many different questions; "
        "ask for fewer or for larger graphs"
    )


def _draw(rng: np.random.Generator, n: int, wide: int) -> Letters:
    return rng.random((n, len(LETTERS))).argsort(1)[:, :wide]


def _are_repeated(keys: list[bytes], seen: set[bytes]) -> list[bool]:
    repeated = []
    for key in keys:
        repeated.append(key in seen)
        seen.add(key)
    return repeated


def _keys(graphs: Graphs, letters: Letters) -> list[bytes]:
    """Return a key per question that depends on the letters but not on the order of the nodes."""
    row, n, exists = np.arange(len(letters)), len(LETTERS), np.arange(letters.shape[1])
    named = np.zeros((len(letters), n + 1, n), dtype=bool)
    graph, first, second = graphs.edges.nonzero()
    named[graph, letters[graph, first], letters[graph, second]] = True
    graph, node = (exists < graphs.nodes[:, None]).nonzero()
    named[graph, n, letters[graph, node]] = True
    asked = np.stack([letters[row, graphs.source], letters[row, graphs.target]], 1)
    packed = np.packbits(named.reshape(len(letters), -1), axis=1)
    return [key.tobytes() for key in np.concatenate([packed, asked.astype(np.uint8)], 1)]
