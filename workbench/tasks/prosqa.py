"""ProsQA (Hao et al. 2024): which of two concepts is a person, by a path through stated facts.

Questions are drawn by the published algorithm, or read from the official files. What can be told
without looking at the person who is asked about is `shortcuts`; the version `matched` takes it
away, and the split `test_swapped` asks about the other person of every test question: the answer
flips.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
from pydantic import model_validator

from workbench.tasks.batch import Batch
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.prosqa import load_prosqa, prosqa_problem, words
from workbench.tasks.worded.prosqa_draw import GraphSettings, draw_graphs
from workbench.tasks.worded.prosqa_graph import Graph, shortest_path, swapped
from workbench.tasks.worded.prosqa_names import CONCEPTS, PEOPLE
from workbench.tasks.worded.prosqa_question import read_question
from workbench.tasks.worded.prosqa_shortcuts import entity_blind_features, target_first
from workbench.tasks.worded.scoring import Score, score_prosqa
from workbench.tasks.worded.task import WordedConfig, WordedTask, word_vocabulary
from workbench.vocabulary import WordVocabulary

GLUE = ("Every", "is", "a", "an", "Is", "or", ".", "?")
SPLITS = ("train", "valid", "test", "test_swapped")


class ProsqaConfig(WordedConfig):
    """Sizes of ProsQA; the defaults are the official files'."""

    n_train: int = 17_886
    n_valid: int = 300
    n_test: int = 500
    n_nodes: int = 28  # drawn; those without any edge are left out, about a fifth
    hops: list[int] = [3, 6]  # fewest and most
    version: Literal["paper", "matched"] = "paper"
    lengths: Literal["official", "balanced"] = "official"  # how often each number of hops occurs
    wording: Literal["sentences", "arrows"] = "sentences"
    # Official files in place of drawn questions
    train_file: str | None = None
    valid_file: str | None = None
    test_file: str | None = None

    @model_validator(mode="after")
    def _check(self) -> "ProsqaConfig":
        self.check_at_least(1, "n_train", "n_valid", "n_test")
        if len(self.hops) != 2:
            raise ValueError(f"hops={self.hops} must be [fewest, most]")
        self.settings()
        return self

    def settings(self) -> GraphSettings:
        """What graphs to draw."""
        least, most = self.hops
        return GraphSettings(self.n_nodes, (least, most), self.version, self.lengths)


class Prosqa(WordedTask):
    """Facts like "Every terpus is a brimpus", and a question which of two things a person is."""

    Config = ProsqaConfig
    cfg: ProsqaConfig

    def own_words(self) -> WordVocabulary:
        """All words that drawn questions may hold, and those of the files."""
        found: set[str] = set()
        for split in ("train", "valid", "test"):
            if self._file(split):
                for problem in self.problems(split):
                    found.update(cast(Graph, problem.facts["graph"]).names)
        own = [*GLUE, *PEOPLE, *CONCEPTS]
        return word_vocabulary([*own, *sorted(found - {*own})], words)

    @property
    def split_names(self) -> Sequence[str]:
        return SPLITS

    @property
    def default_split(self) -> str:
        return "test"

    def read_problems(self, split: str) -> list[Problem]:
        if split == "test_swapped":
            return [
                prosqa_problem(swapped(graph), self.cfg.wording) for graph in self.graphs("test")
            ]
        path = self._file(split)
        if path is not None:
            return load_prosqa(Path(path))
        n = {"train": self.cfg.n_train, "valid": self.cfg.n_valid, "test": self.cfg.n_test}[split]
        return [prosqa_problem(graph, self.cfg.wording) for graph in self._drawn[split][:n]]

    def graphs(self, split: str) -> list[Graph]:
        """The graphs behind a split's questions."""
        return [cast(Graph, problem.facts["graph"]) for problem in self.problems(split)]

    def _file(self, split: str) -> str | None:
        files = {"train": self.cfg.train_file, "valid": self.cfg.valid_file}
        return (files | {"test": self.cfg.test_file}).get(split)

    @property
    def _drawn(self) -> dict[str, list[Graph]]:
        sizes = self.cfg.n_test, self.cfg.n_valid, self.cfg.n_train
        return drawn(self.seed, sizes, self.cfg.settings())

    def score(self, problem: Problem, said: str) -> Score:
        return score_prosqa(said, problem.answer)

    def decides(self, problem: Problem) -> tuple[str, str, str]:
        graph = cast(Graph, problem.facts["graph"])
        right, wrong = graph.names[graph.target], graph.names[graph.wrong]
        return problem.answer.partition(right)[0], right, wrong

    def bridges(self, problem: Problem) -> Sequence[str]:
        graph = cast(Graph, problem.facts["graph"])
        return [graph.names[node] for node in shortest_path(graph)[1:-1]]

    def majority_rate(self, split: str) -> float:
        """Accuracy of always choosing the concept that stands in the commoner place."""
        first = target_first(self.graphs(split)).mean()
        return float(max(first, 1 - first))

    def shortcuts(self, split: str) -> dict[str, float]:
        """What one concept has and the other has not, fitted on the training questions."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        graphs = self.graphs("train")[:2_000]
        given, wanted = _columns(graphs), target_first(graphs)
        there, right = _columns(self.graphs(split)), target_first(self.graphs(split))
        found = {"named first": self.majority_rate(split)}
        names = entity_blind_features(graphs[:1])
        if wanted.min() == wanted.max():
            return found
        for column, name in enumerate(names):
            one = LogisticRegression().fit(given[:, [column]], wanted)
            found[name] = float((one.predict(there[:, [column]]) == right).mean())
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(given, wanted)
        found["all, whoever is asked about"] = float((model.predict(there) == right).mean())
        return found

    def local_features(self, batch: Batch) -> dict[str, np.ndarray]:
        raise ValueError("ProsQA's features are differences; see `shortcuts`")

    def typed(self, text: str) -> Problem:
        return prosqa_problem(read_question(text), self.cfg.wording)


@lru_cache(maxsize=2)
def drawn(
    seed: int, sizes: tuple[int, int, int], settings: GraphSettings
) -> dict[str, list[Graph]]:
    """The graphs of test, valid and train at once, so that no question is in two splits.

    They are kept, for several runs of one task are often looked at together.
    """
    seen: set[Graph] = set()
    found = {}
    for number, (split, n) in enumerate(zip(("test", "valid", "train"), sizes, strict=True)):
        graphs = draw_graphs(n + n // 20 + 10, seed * len(sizes) + number, settings)
        found[split] = [g for g in dict.fromkeys(graphs) if g not in seen][:n]
        seen.update(found[split])
    return found


def _columns(graphs: Sequence[Graph]) -> np.ndarray:
    return np.stack([*entity_blind_features(graphs).values()], axis=1)
