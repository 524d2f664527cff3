"""Chains of facts over two entity-disjoint graphs: the symbolic tasks of DiscoLoop, section 4.

Graph A and graph B share their relations but no entities. A fact is `subject relation → object`. A
question is `a r1 r2 → c`; it never names the bridge b: a r1 → b, b r2 → c. The model trains on all
facts of both graphs and on some chains of A. Chains of B test whether it composes facts that it has
never seen composed.

    train_atom  every fact of both graphs
    train_id    some chains of A
    test_id     other chains of A
    test_ood    chains of B

A chain may visit the same entity twice, and an entity may be its own object.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import model_validator

from workbench.registries import TASKS
from workbench.settings.config import StrictModel
from workbench.tasks.base import Task
from workbench.tasks.batch import NONE, PAD, Batch, HopBatch
from workbench.words.vocabulary import WordVocabulary

Ints = NDArray[np.int64]
COUNT = {1: "one", 2: "two", 3: "three"}


class HopsConfig(StrictModel):
    """Sizes of the graphs; the defaults are the paper's."""

    n_entities: int = 500  # per graph
    n_relations: int = 50
    out_degree: int = 10

    @model_validator(mode="after")
    def _check_graph(self) -> "HopsConfig":
        for name, value in self:
            if value < 1:
                raise ValueError(f"{name}={value} must be at least 1")
        self.check_at_most(100_000, "n_entities", "n_relations")
        if self.out_degree > self.n_relations:
            raise ValueError(
                f"out_degree={self.out_degree} needs as many relations; n_relations is "
                f"{self.n_relations}"
            )
        return self


class TwoHopConfig(HopsConfig):
    """Sizes of the two-hop task."""

    n_train: int = 10_000
    n_test_id: int = 2_000
    n_test_ood: int = 2_000

    def chains(self) -> dict[int, tuple[int, int, int]]:
        """Return the number of chains (train_id, test_id, test_ood) for each number of hops."""
        return {2: (self.n_train, self.n_test_id, self.n_test_ood)}


class ThreeHopConfig(HopsConfig):
    """Sizes of the three-hop task, which trains on two- and three-hop chains."""

    n_train_two: int = 10_000
    n_train_three: int = 10_000
    n_test_id_two: int = 2_000
    n_test_id_three: int = 2_000
    n_test_ood_two: int = 2_000
    n_test_ood_three: int = 2_000

    def chains(self) -> dict[int, tuple[int, int, int]]:
        """Return the number of chains (train_id, test_id, test_ood) for each number of hops."""
        return {
            2: (self.n_train_two, self.n_test_id_two, self.n_test_ood_two),
            3: (self.n_train_three, self.n_test_id_three, self.n_test_ood_three),
        }


class FactGraph(NamedTuple):
    """Edges of one graph, as token ids."""

    first: int  # token id of the first entity
    relation: Ints  # [entity out_degree]
    target: Ints  # [entity out_degree]

    def walk(self, chain: Ints, hops: int) -> tuple[Ints, Ints]:
        """Return the nodes [chain hops+1] and relations [chain hops] of numbered chains.

        A chain's number encodes the entity as its first digit and then the edge taken at each hop,
        one digit per hop in base `out_degree`.
        """
        degree = self.relation.shape[1]
        node = chain // degree**hops
        nodes, relations = [node + self.first], []
        for hop in reversed(range(hops)):
            edge = chain // degree**hop % degree
            relations.append(self.relation[node, edge])
            nodes.append(self.target[node, edge])
            node = nodes[-1] - self.first
        return np.stack(nodes, 1), np.stack(relations, 1)


class HopTask(Task):
    """Base class of tasks with facts and chains of up to `max_hops` hops."""

    cfg: TwoHopConfig | ThreeHopConfig

    def __init__(self, cfg: TwoHopConfig | ThreeHopConfig, seed: int) -> None:
        super().__init__(cfg, seed)
        self.max_hops = max(cfg.chains())
        n, n_relations = cfg.n_entities, cfg.n_relations
        self.vocabulary = WordVocabulary(
            ["<pad>"]
            + [f"A{entity}" for entity in range(n)]
            + [f"B{entity}" for entity in range(n)]
            + [f"r{relation}" for relation in range(n_relations)]
        )
        self.graphs = {"A": self._draw_graph(1, 0), "B": self._draw_graph(1 + n, 1)}

    @property
    def n_ctx(self) -> int:
        return 1 + self.max_hops

    @cached_property
    def splits(self) -> Mapping[str, HopBatch]:
        cfg = self.cfg
        n_facts = cfg.n_entities * cfg.out_degree
        rows: dict[str, list[HopBatch]] = {"train_id": [], "test_id": [], "test_ood": []}
        for hops, (n_train, n_test_id, n_test_ood) in cfg.chains().items():
            wanted = {"A": n_train + n_test_id, "B": n_test_ood}
            drawn = {graph: self._draw(graph, hops, n) for graph, n in wanted.items()}
            rows["train_id"].append(self._rows("A", drawn["A"][:n_train], hops))
            rows["test_id"].append(self._rows("A", drawn["A"][n_train:], hops))
            rows["test_ood"].append(self._rows("B", drawn["B"], hops))
        facts = [self._rows(graph, np.arange(n_facts), 1) for graph in self.graphs]
        return {"train_atom": Batch.cat(facts)} | {k: Batch.cat(v) for k, v in rows.items()}

    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of the best guess from each part of the question, by the part.

        Each value is an upper bound: the guess has the answers of all chains of the same graph and
        length, but sees only its part of the question. A shortcut that cannot use the graph cannot
        do better.
        """
        batch = self.splits[split]
        found: dict[str, list[np.ndarray]] = {}
        for hops in batch.hops.unique().tolist():
            for graph in self.graphs:
                rows = batch[(batch.hops == hops) & self._is_of(graph, batch)]
                if len(rows):
                    for seen, right in self._guesses(rows, graph, hops).items():
                        found.setdefault(seen, []).append(right)
        return {seen: float(np.concatenate(right).mean()) for seen, right in found.items()}

    def _guesses(self, rows: Batch, graph: str, hops: int) -> dict[str, np.ndarray]:
        """Return which rows a guess from each view of the question gets right."""
        nodes, relations = self.graphs[graph].walk(self._all_chains(hops), hops)
        questions = np.concatenate((nodes[:, :1], relations), 1)
        asked = rows.tokens[:, : hops + 1].numpy()
        views = {"a": [0], f"r{hops}": [hops]}
        if hops > 1:
            views[", ".join(f"r{hop + 1}" for hop in range(hops))] = list(range(1, hops + 1))
        return {
            f"answer given {seen}": _best_guess(questions[:, part], nodes[:, -1], asked[:, part])
            == rows.answer.numpy()
            for seen, part in views.items()
        }

    def question(self, text: str) -> HopBatch:
        tokens = self.vocabulary.encode(text)
        words = text.split()
        hops = len(tokens) - 1
        graph = self.graphs.get(words[0][0])
        if graph is None or not all(word.startswith("r") for word in words[1:]):
            raise ValueError(f"{text!r} is no question; a question reads like 'A1 r2 r3'")
        if not 1 <= hops <= self.max_hops:
            raise ValueError(
                f"{text!r} has {hops} relations; a question of this task has 1 to {self.max_hops}"
            )
        nodes = [tokens[0]]
        for relation in tokens[1:]:
            node = nodes[-1] - graph.first
            pairs = zip(graph.relation[node].tolist(), graph.target[node].tolist(), strict=True)
            edges = dict(pairs)
            if relation not in edges:
                known = ", ".join(self.vocabulary.words[r] for r in sorted(edges))
                raise ValueError(
                    f"{self.vocabulary.words[nodes[-1]]} has no relation "
                    f"{self.vocabulary.words[relation]}; it has {known}"
                )
            nodes.append(edges[relation])
        return self._batch(np.array([nodes]), np.array([tokens[1:]])).trimmed()

    def _draw_graph(self, first: int, stream: int) -> FactGraph:
        cfg = self.cfg
        rng = np.random.default_rng([self.seed, stream])
        shape = (cfg.n_entities, cfg.n_relations)
        relation = rng.random(shape).argsort(1)[:, : cfg.out_degree]
        target = rng.integers(cfg.n_entities, size=relation.shape)
        return FactGraph(first, relation + 1 + 2 * cfg.n_entities, target + first)

    def _all_chains(self, hops: int) -> Ints:
        return np.arange(self.cfg.n_entities * self.cfg.out_degree**hops)

    def _draw(self, graph: str, hops: int, n: int) -> Ints:
        """Draw the numbers of `n` different chains of one graph."""
        n_chains = self.cfg.n_entities * self.cfg.out_degree**hops
        if n > n_chains:
            raise ValueError(
                f"{n} {COUNT[hops]}-hop chains of graph {graph} are asked for, but there are only "
                f"{n_chains}"
            )
        rng = np.random.default_rng([self.seed, 2 + ord(graph), hops])
        return rng.permutation(n_chains)[:n]

    def _rows(self, graph: str, chains: Ints, hops: int) -> HopBatch:
        return self._batch(*self.graphs[graph].walk(chains, hops))

    def _batch(self, nodes: Ints, relations: Ints) -> HopBatch:
        n, hops = relations.shape
        wide = self.max_hops
        tokens = np.full((n, 1 + wide), PAD)
        tokens[:, 0] = nodes[:, 0]
        tokens[:, 1 : hops + 1] = relations
        bridge = np.full((n, wide - 1), NONE)
        bridge[:, : hops - 1] = nodes[:, 1:-1]
        bridge_at = np.where(bridge >= 0, np.arange(1, wide), NONE)
        facts = np.full((n, wide, 3), NONE)
        facts[:, :hops] = np.stack((nodes[:, :-1], relations, nodes[:, 1:]), -1)
        every = {
            "tokens": tokens,
            "length": np.full(n, hops + 1),
            "read_at": np.full(n, hops),
            "answer": nodes[:, -1],
            "difficulty": np.full(n, hops),
            "bridge": bridge,
            "bridge_at": bridge_at,
            "facts": facts,
        }
        return HopBatch(**{k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in every.items()})

    def _is_of(self, graph: str, batch: Batch) -> torch.Tensor:
        first = self.graphs[graph].first
        return (batch.tokens[:, 0] >= first) & (batch.tokens[:, 0] < first + self.cfg.n_entities)


@TASKS.register(
    "two_hop",
    example={
        "n_entities": 12,
        "n_relations": 5,
        "out_degree": 3,
        "n_train": 20,
        "n_test_id": 8,
        "n_test_ood": 8,
    },
)
class TwoHop(HopTask):
    """Facts and two-hop chains."""

    Config = TwoHopConfig


@TASKS.register(
    "three_hop",
    example={
        "n_entities": 12,
        "n_relations": 5,
        "out_degree": 3,
        "n_train_two": 8,
        "n_train_three": 8,
        "n_test_id_two": 8,
        "n_test_id_three": 8,
        "n_test_ood_two": 8,
        "n_test_ood_three": 8,
    },
)
class ThreeHop(HopTask):
    """Facts, two-hop chains and three-hop chains; training includes both lengths."""

    Config = ThreeHopConfig


def _best_guess(seen: Ints, answer: Ints, asked: Ints) -> Ints:
    """Return, for each row of `asked`, the most common answer among equal rows of `seen`."""
    both = np.concatenate((seen, asked))
    _, key = np.unique(both, axis=0, return_inverse=True)
    key, wanted = np.split(key, [len(seen)])
    n_answers = int(answer.max()) + 1
    pair, count = np.unique(key * n_answers + answer, return_counts=True)
    order = count.argsort(kind="stable")  # the most common answer is written last and so wins
    guess = np.full(int(key.max()) + 1, NONE)
    guess[pair[order] // n_answers] = pair[order] % n_answers
    return guess[wanted]
