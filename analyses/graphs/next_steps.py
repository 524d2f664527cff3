"""How probable is each possible next step in the graph of a ProsQA question?

The probability of a step "A B ." or "Every A is a B ." is the product of the probabilities of its
tokens up to B, each given the tokens before it. CoCoNuT (arXiv 2412.06769, section 5.3) calls this
the value of a concept.
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

ROWS = 256  # run at once

# All tokens of a step but the last, and (start, end, last token) of the steps that begin with them
Openings = list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]


@dataclass(frozen=True, eq=False)
class _Round:
    """One opening for each row, and the steps that complete it."""

    words: Int[Tensor, "batch said"]
    real: Bool[Tensor, "batch said"]
    at: Int[Tensor, "step 3"]
    """Row, start and end of each step."""
    last: Int[Tensor, " step"]
    """Last token of each step."""

    def to(self, device: torch.device) -> "_Round":
        """Return a copy on another device; `at` is not moved."""
        words, real, last = (t.to(device) for t in (self.words, self.real, self.last))
        return _Round(words, real, self.at, last)


class NextSteps:
    """All possible next steps in some graphs, as tokens, ready for models to give probabilities."""

    def __init__(self, task: Prosqa, graphs: Sequence[Graph]) -> None:
        """Tokenise the steps.

        Args:
            task: The task, which sets the wording and the vocabulary.
            graphs: Graphs of the rows that models will be given.
        """
        self.n_nodes = max(len(graph.names) for graph in graphs)
        self._openings = [_openings(task, graph) for graph in graphs]
        self._rounds: dict[tuple[int, int], list[_Round]] = {}

    @torch.no_grad()
    def probabilities(
        self, model: CanThink, batch: WordedBatch
    ) -> Float[Tensor, "batch start end"]:
        """Return the probability of every step between two nodes, whether or not it is an edge.

        Args:
            model: The model; active hooks apply.
            batch: The rows; everything after their prompts is ignored.

        The probability is 0 for steps to a person, for steps from a node to itself, and for padding
        nodes of smaller graphs.
        """
        # An edit may address certain rows, so it must see the whole batch
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
    """Compute the probability of each step of a round."""
    after = begun.logits[:, None]
    if one.words.shape[1]:
        after = torch.cat((after, begun.after(one.words, one.real)), dim=1)
    logs = after.float().log_softmax(-1)  # [batch said+1 d_vocab]
    opening = (logs[:, :-1].gather(2, one.words[..., None])[..., 0] * one.real).sum(1)
    row = one.at[:, 0].to(opening.device)
    return (opening[row] + logs[row, one.real.sum(1)[row], one.last]).exp()


def _rounds(openings: Sequence[Openings]) -> list[_Round]:
    """Split all steps of all rows into rounds with at most one opening per row."""
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
    """Group all steps by all their tokens but the last: start, end and last token of each."""
    found: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    people = graph.people
    for a, b in product(range(len(graph.names)), repeat=2):
        if a != b and b not in people:
            words = step_words(graph, (a, b), task.cfg.wording)
            tokens = task.vocabulary.encode(words)
            found.setdefault(tuple(tokens[:-1]), []).append((a, b, tokens[-1]))
    return list(found.items())
