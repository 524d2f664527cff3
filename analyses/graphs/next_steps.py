"""How probable is every step that a model might say next about the graph of a ProsQA question?

A step "A B ." or "Every A is a B ." is as probable as its tokens up to B together, one after
another, each given those before it: what CoCoNuT (arXiv 2412.06769, section 5.3) calls the value of
a concept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.capabilities import CanThink
from workbench.hooks import is_heard
from workbench.kinds import thought_model
from workbench.models.thoughts.continuation import Continuation
from workbench.tasks.worded.prosqa import Prosqa
from workbench.tasks.worded.prosqa.concept_graph import Graph
from workbench.tasks.worded.prosqa.parsing import step_words
from workbench.tasks.worded.rows import WordedBatch

ROWS = 256  # that are run at once

# Tokens of a step but its last one; then start, end and last token of the steps that begin so
Openings = list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]


@dataclass(frozen=True, eq=False)
class _Round:
    """One opening of each row, and the steps that it may end in."""

    words: Int[Tensor, "batch said"]
    real: Bool[Tensor, "batch said"]
    at: Int[Tensor, "step 3"]
    """Row, start and end of each step."""
    last: Int[Tensor, " step"]
    """Its last token."""

    def to(self, device: torch.device) -> "_Round":
        """The same on another device; `at` stays where it is."""
        words, real, last = (t.to(device) for t in (self.words, self.real, self.last))
        return _Round(words, real, self.at, last)


class NextSteps:
    """All steps that might be said about some graphs, in tokens, ready to be asked of models."""

    def __init__(self, task: Prosqa, graphs: Sequence[Graph]) -> None:
        """Put the steps into tokens.

        Args:
            task: Whose wording and vocabulary hold.
            graphs: Of the rows that models will be given.
        """
        self.n_nodes = max(len(graph.names) for graph in graphs)
        self._openings = [_openings(task, graph) for graph in graphs]
        self._rounds: dict[tuple[int, int], list[_Round]] = {}

    @torch.no_grad()
    def probabilities(
        self, model: CanThink, batch: WordedBatch
    ) -> Float[Tensor, "batch start end"]:
        """The probability of every step from one node to another, be there such an edge or not.

        Args:
            model: The model; hooks that are open on it act.
            batch: The rows; what follows their prompts is not looked at.

        Steps to a person and from a node to itself count as none, and are 0, as are those of nodes
        that a graph with fewer of them has not.
        """
        # An edit may be of certain rows, so that it must see them all
        size = len(batch) if is_heard(*model.hook_points()) else ROWS
        found = torch.zeros(len(batch), self.n_nodes, self.n_nodes)
        for start in range(0, len(batch), size):
            rows = batch[start : start + size].prompts()
            begun = Continuation(thought_model(model), rows["tokens"], rows["attention_mask"])
            for one in self._of(start, start + size):
                row, a, b = one.at.T
                found[start + row, a, b] = _values(begun, one.to(model.device)).cpu()
        return found

    def _of(self, start: int, end: int) -> list[_Round]:
        if (start, end) not in self._rounds:
            self._rounds[start, end] = _rounds(self._openings[start:end])
        return self._rounds[start, end]


def _values(begun: Continuation, one: _Round) -> Float[Tensor, " step"]:
    """The probability of each step of a round."""
    after = begun.logits[:, None]
    if one.words.shape[1]:
        after = torch.cat((after, begun.after(one.words, one.real)), dim=1)
    logs = after.float().log_softmax(-1)  # [batch said+1 d_vocab]
    opening = (logs[:, :-1].gather(2, one.words[..., None])[..., 0] * one.real).sum(1)
    row = one.at[:, 0].to(opening.device)
    return (opening[row] + logs[row, one.real.sum(1)[row], one.last]).exp()


def _rounds(openings: Sequence[Openings]) -> list[_Round]:
    """All steps of all rows, so that every round holds one opening of each row at most."""
    rounds = []
    for number in range(max(map(len, openings))):
        chosen = [own[number] if number < len(own) else ((), []) for own in openings]
        width = max(len(opening) for opening, _ in chosen)
        padded = [[*opening, *[0] * (width - len(opening))] for opening, _ in chosen]
        lengths = torch.tensor([len(opening) for opening, _ in chosen])
        steps = torch.tensor([(row, *step) for row, (_, own) in enumerate(chosen) for step in own])
        words = torch.tensor(padded, dtype=torch.long).view(len(chosen), width)
        real = torch.arange(width) < lengths[:, None]
        rounds.append(_Round(words, real, steps[:, :3], steps[:, 3]))
    return rounds


def _openings(task: Prosqa, graph: Graph) -> Openings:
    """All steps by their tokens but the last: start, end and last token of each."""
    found: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    people = graph.people
    for a, b in product(range(len(graph.names)), repeat=2):
        if a != b and b not in people:
            words = step_words(graph, (a, b), task.cfg.wording)
            tokens = task.vocabulary.encode(words)
            found.setdefault(tuple(tokens[:-1]), []).append((a, b, tokens[-1]))
    return list(found.items())
