"""Is there a path from one node of a directed graph to another? Experiment I of VCoT.

A row is a graph with one token per node, and asks about a source and a target. For each number of
hops, half of the rows are reachable, in exactly that many edges. Training has few hops; the test
split has buckets with more. `difficulty` is the number of hops of the bucket, also for unreachable
rows.

    train   hops and nodes drawn evenly from ranges
    valid   other rows of the same kind
    test    a bucket for each of `test_hops`, with larger graphs

In the version `paper`, the unreachable rows are drawn by another algorithm, and counting the edges
at source and target tells them apart well. In the version `matched`, rows come in pairs of twins:
every reachable row of a split has an unreachable twin with the same number of nodes and edges. In
the twin, every node has the same number of edges in and out, and all `local_features` are equal
(`graphs.draw_twins`). Any guess from these features is right for exactly half of a split's rows.
What this controls for, and what it does not:

- Twins differ in the middle of the path. For paths of h hops, the subgraphs up to (h−1)//2 edges
  below the source and above the target are the same in both; from 5 hops on, these contain
  everything within 2 edges. For 1 to 4 hops, only the counts are the same.
- At 1 and 2 hops the answer itself is local: the edge from source to target, or the node between.
- Counts over larger neighbourhoods are not matched, and tell twins apart well: fewer nodes lie
  within 3, 4, … edges below the source or above the target of an unreachable twin. A model that
  propagates counts for as many steps as the path has edges can answer from them without finding
  the path. The counts cannot be matched throughout: a target h hops away has h ancestors and its
  source has h descendants. In a twin these would be different nodes, and from 10 hops on a graph
  does not have that many.
- Reachable graphs without such a twin are left out. These have many edges, so that several paths
  lead to the target. Graphs of `matched` therefore have fewer edges than those of `paper`.

Nodes are labelled with random letters. The published program gives a graph of n nodes the first n
letters, so its larger test graphs have letters that never occur in training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from pydantic import model_validator

from workbench.registries import TASKS
from workbench.settings.config import StrictModel
from workbench.tasks.base import Task
from workbench.tasks.batch import PAD, Batch, GraphBatch
from workbench.tasks.reachability.graph_text import LETTERS, parse_graph, write_graph
from workbench.tasks.reachability.graphs import (
    Graphs,
    Places,
    draw_reachable,
    draw_twins,
    draw_unreachable,
    local_features,
    path_lengths,
)
from workbench.tasks.reachability.lettering import Letters, letter
from workbench.tasks.reachability.rules import Rule, fit_rule
from workbench.words.vocabulary import WordVocabulary

WIDEST = 20  # nodes of the largest graph
Rows = Int[np.ndarray, " row"]
RULE = "edges out of source and into target"


class ReachabilityConfig(StrictModel):
    """Sizes of the splits and graphs; the defaults are the paper's."""

    version: Literal["paper", "matched"] = "paper"
    n_train: int = 12_000
    n_valid: int = 1_000
    n_test: int = 500  # rows per number of hops
    train_hops_min: int = 1
    train_hops_max: int = 5
    test_hops: list[int] = [1, 2, 3, 4, 6, 8, 10, 12]
    nodes_min: int = 8  # in training; a path of h hops has at least h + 2
    nodes_max: int = 16

    @model_validator(mode="after")
    def _check_sizes(self) -> "ReachabilityConfig":
        self.check_at_least(2, "n_train", "n_valid", "n_test")
        self.check_at_most(1_000, "nodes_max", "train_hops_max")
        for name in ("n_train", "n_valid", "n_test"):
            if getattr(self, name) % 2:
                raise ValueError(f"{name}={getattr(self, name)} must be even: half is reachable")
        self.check_at_least(1, "train_hops_min")
        self.check_at_least(self.train_hops_min, "train_hops_max")
        self.check_at_least(3, "nodes_min")
        self.check_at_least(self.nodes_min, "nodes_max")
        if self.nodes_max < self.train_hops_max + 2:
            raise ValueError(
                f"train_hops_max={self.train_hops_max} needs graphs of {self.train_hops_max + 2} "
                f"nodes; nodes_max={self.nodes_max}"
            )
        if self.nodes_max > WIDEST:
            raise ValueError(f"nodes_max={self.nodes_max} must be at most {WIDEST}")
        most = WIDEST - 2
        if not self.test_hops or not all(1 <= hops <= most for hops in self.test_hops):
            raise ValueError(f"test_hops={self.test_hops} must be numbers from 1 to {most}")
        if len(set(self.test_hops)) < len(self.test_hops):
            raise ValueError(f"test_hops={self.test_hops} names a number of hops twice")
        return self


@TASKS.register("reachability", example={"n_train": 60, "n_valid": 20, "n_test": 10})
class Reachability(Task):
    """Directed graphs with a source and a target: does a path lead from one to the other?"""

    Config = ReachabilityConfig
    perception = "nodes"
    readout = "node_pair"
    unit = "hops"
    answers = ("unreachable", "reachable")
    cfg: ReachabilityConfig

    def __init__(self, cfg: ReachabilityConfig, seed: int) -> None:
        super().__init__(cfg, seed)
        self.vocabulary = WordVocabulary(["<pad>", *LETTERS])
        self._shortcuts: dict[str, dict[str, float]] = {}

    @property
    def n_ctx(self) -> int:
        return WIDEST

    @cached_property
    def splits(self) -> Mapping[str, GraphBatch]:
        drawn = {
            "test": self._draw_test(),
            "valid": self._draw_range(self.cfg.n_valid, 1),
            "train": self._draw_range(self.cfg.n_train, 0),
        }
        seen: set[bytes] = set()
        made = {}
        for stream, (split, (graphs, hops)) in enumerate(drawn.items()):
            rng = np.random.default_rng([self.seed, 3, stream])
            made[split] = _batch(graphs, hops, letter(rng, graphs, seen))
        return {split: made[split] for split in ("train", "valid", "test")}

    def local_features(self, batch: Batch) -> dict[str, np.ndarray]:
        """Return counts over the graph and over the nodes within two edges of source and target."""
        return local_features(_graphs(batch))

    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of guessing from each local feature with the best rule.

        The rules are fitted on the training split. One more rule answers "reachable" if an edge
        leads out of the source and an edge leads into the target.
        """
        if split not in self._shortcuts:
            batch = self.split(split)
            right, features = batch.answer.numpy(), self.local_features(batch)
            found = {
                name: float((rule.guess(features[name]) == right).mean())
                for name, rule in self._rules.items()
            }
            both = (features["children of source"] > 0) & (features["parents of target"] > 0)
            found[RULE] = float((both == right).mean())
            self._shortcuts[split] = found
        return dict(self._shortcuts[split])

    def question(self, text: str) -> GraphBatch:
        """Parse a graph and two of its nodes: `A>B B>C D : A C`; D is a node without edges.

        The difficulty is 0 if the target is unreachable, since a typed row belongs to no bucket.
        """
        names, edges, source, target = parse_graph(text, WIDEST)
        asked = np.array([source]), np.array([target])
        graphs = Graphs(edges[None], np.array([len(names)]), *asked)
        hops = path_lengths(graphs.edges, graphs.source)[0, target].clip(min=0)
        letters = np.array([[LETTERS.index(name) for name in names]])
        return _batch(graphs, hops[None], letters)

    def texts(self, batch: Batch) -> list[str]:
        """Return rows as text that `question` can parse."""
        graphs, words = _graphs(batch), self.vocabulary.words
        texts = []
        for row, n in enumerate(graphs.nodes):
            names = [words[token] for token in batch.tokens[row, :n].tolist()]
            asked = int(graphs.source[row]), int(graphs.target[row])
            texts.append(write_graph(names, graphs.edges[row, :n, :n], *asked))
        return texts

    def examples(self, batch: Batch) -> list[dict[str, object]]:
        return [
            row | {"question": text}
            for row, text in zip(super().examples(batch), self.texts(batch), strict=True)
        ]

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        """The best rule for each local feature, fitted on the training split."""
        train = self.split("train")
        answers = train.answer.numpy()
        features = self.local_features(train)
        return {name: fit_rule(numbers, answers) for name, numbers in features.items()}

    def _draw_range(self, n: int, stream: int) -> tuple[Graphs, Rows]:
        """Draw rows with the numbers of hops and nodes used in training."""
        cfg = self.cfg
        rng = np.random.default_rng([self.seed, stream])
        hops = rng.integers(cfg.train_hops_min, cfg.train_hops_max + 1, n // 2)
        least = np.maximum(hops + 2, cfg.nodes_min)
        return self._draw(rng, hops, least, np.full_like(hops, cfg.nodes_max))

    def _draw_test(self) -> tuple[Graphs, Rows]:
        """Draw the buckets of the test split, in the order of `test_hops`."""
        buckets = []
        for number in self.cfg.test_hops:
            rng = np.random.default_rng([self.seed, 2, number])
            hops = np.full(self.cfg.n_test // 2, number)
            least, most = max(number + 2, 10), min(max(number + 6, 16), WIDEST)
            buckets.append(
                self._draw(rng, hops, np.full_like(hops, least), np.full_like(hops, most))
            )
        return _joined([graphs for graphs, _ in buckets]), np.concatenate([h for _, h in buckets])

    def _draw(
        self, rng: np.random.Generator, hops: Places, least: Places, most: Places
    ) -> tuple[Graphs, Rows]:
        """Draw equally many reachable and unreachable graphs, shuffled, with their bucket hops."""
        nodes = rng.integers(least, most + 1)
        if self.cfg.version == "matched":
            reachable, unreachable = draw_twins(rng, hops, nodes, WIDEST)
        else:
            reachable, _ = draw_reachable(rng, hops, nodes, WIDEST)
            # the paper's unreachable graphs need no room for a path
            nodes = rng.integers(least.min(), most + 1)
            unreachable = draw_unreachable(rng, nodes, WIDEST)
        order = rng.permutation(2 * len(hops))
        return _joined([reachable, unreachable])[order], np.tile(hops, 2)[order]


def _joined(parts: Sequence[Graphs]) -> Graphs:
    """Concatenate graphs of several draws."""
    return Graphs(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Graphs))
    )


def _batch(graphs: Graphs, hops: Places, letters: Letters) -> GraphBatch:
    """Build a batch from graphs and the letters of their nodes."""
    n, wide = letters.shape
    distance = path_lengths(graphs.edges, graphs.source)
    every = {
        "tokens": np.where(np.arange(wide) < graphs.nodes[:, None], 1 + letters, PAD),
        "length": graphs.nodes,
        "read_at": graphs.target,
        "answer": (distance[np.arange(n), graphs.target] > 0).astype(np.int64),
        "difficulty": hops,
        "bridge": np.empty((n, 0), dtype=np.int64),
        "bridge_at": np.empty((n, 0), dtype=np.int64),
        "adjacency": graphs.edges,
        "source_at": graphs.source,
        "target_at": graphs.target,
        "distance": distance,
    }
    # copy, so that no two fields share memory
    return GraphBatch(**{name: torch.from_numpy(values.copy()) for name, values in every.items()})


def _graphs(batch: Batch) -> Graphs:
    """Return the graphs of a batch as arrays."""
    if not isinstance(batch, GraphBatch):
        raise TypeError(f"a {type(batch).__name__} holds no graphs; this needs a GraphBatch")
    held = (batch.adjacency, batch.length, batch.source_at, batch.target_at)
    return Graphs(*(tensor.cpu().numpy() for tensor in held))
