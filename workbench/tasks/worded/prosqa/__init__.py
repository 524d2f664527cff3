"""ProsQA (Hao et al. 2024): which of two concepts a person is, by a path through stated facts.

Questions are drawn by the published algorithm, or read from the official files. `shortcuts`
measures how well the answer can be guessed without looking at the person in the question. The
version `matched` removes these shortcuts. The split `test_swapped` repeats each test question with
the other person, so that the answer flips.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
from jaxtyping import Int
from pydantic import model_validator

from workbench.kinds import worded_batch
from workbench.registries import TASKS
from workbench.tasks.batch import Batch
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.prosqa.concept_graph import Graph, renamed, shortest_path, swapped
from workbench.tasks.worded.prosqa.drawing import GraphSettings, draw_graphs
from workbench.tasks.worded.prosqa.entity_blind import entity_blind_features, target_first
from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE
from workbench.tasks.worded.prosqa.parsing import load_prosqa, prosqa_problem, words
from workbench.tasks.worded.prosqa.typed import read_question
from workbench.tasks.worded.scoring import Score, score_prosqa
from workbench.tasks.worded.task import WordedConfig, WordedTask, word_vocabulary
from workbench.words.vocabulary import WordVocabulary

GLUE = ("Every", "is", "a", "an", "Is", "or", ".", "?")
SPLITS = ("train", "valid", "test", "test_swapped")
DRAWN = ("test", "valid", "train")  # splits in the order in which they are drawn
GUESSED = 2_000  # number of graphs that shortcuts are fitted on


class ProsqaConfig(WordedConfig):
    """Sizes of ProsQA; the defaults are the official files'."""

    n_train: int = 17_886
    n_valid: int = 300
    n_test: int = 500
    n_nodes: int = 28  # nodes drawn; about a fifth have no edges and are left out
    hops: list[int] = [3, 6]  # fewest and most
    version: Literal["paper", "matched"] = "paper"
    lengths: Literal["official", "balanced"] = "official"  # distribution of the numbers of hops
    wording: Literal["sentences", "arrows"] = "sentences"
    # Official files to use instead of drawn questions. If any split is drawn, the questions of
    # files get the task's wording and words: people stay people, and concepts stay concepts
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
        """Return the settings of the graphs to draw."""
        least, most = self.hops
        return GraphSettings(self.n_nodes, (least, most), self.version, self.lengths)


@TASKS.register("prosqa", example={"n_train": 20, "n_valid": 5, "n_test": 8})
class Prosqa(WordedTask):
    """Facts like "Every terpus is a brimpus"; the question is which of two things a person is."""

    Config = ProsqaConfig
    cfg: ProsqaConfig

    def own_words(self) -> WordVocabulary:
        """Return all words that may occur in drawn questions, and those of the files."""
        found: set[str] = set()
        if self._all_from_files:
            for split in ("train", "valid", "test"):
                for graph in self.graphs(split):
                    found.update(graph.names)
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
            return [self._as_ours(*found) for found in enumerate(load_prosqa(Path(path)))]
        return [prosqa_problem(graph, self.cfg.wording) for graph in self._drawn(split)]

    @property
    def _all_from_files(self) -> bool:
        return all(self._file(split) for split in ("train", "valid", "test"))

    def _as_ours(self, number: int, problem: Problem) -> Problem:
        """Return a file's problem in the task's wording, and in its words if any split is drawn.

        Raises:
            ValueError: There are fewer words than nodes.
        """
        graph = cast(Graph, problem.facts["graph"])
        if not self._all_from_files:
            draw = np.random.default_rng([self.seed, number])
            graph = renamed(graph, PEOPLE, CONCEPTS, draw)
        elif self.cfg.wording == "sentences":
            return problem
        worded = prosqa_problem(graph, self.cfg.wording)
        return replace(worded, facts={**problem.facts, **worded.facts})

    def from_file(self, path: Path) -> tuple[list[Problem], dict[str, int]]:
        kept, left_out = [], Counter[str]()
        for number, problem in enumerate(load_prosqa(path)):
            try:
                kept.append(self._as_ours(number, problem))
            except ValueError:
                left_out["more names than the task has words"] += 1
        known = {*self.vocabulary.words} if isinstance(self.vocabulary, WordVocabulary) else None
        if known is not None:
            asked = [problem for problem in kept if known.issuperset(self.names(problem))]
            left_out["names that the task has no words for"] += len(kept) - len(asked)
            kept = asked
        return kept, {reason: n for reason, n in left_out.items() if n}

    def graphs(self, split: str) -> list[Graph]:
        """Return the graphs of a split's questions."""
        return [cast(Graph, problem.facts["graph"]) for problem in self.problems(split)]

    def _file(self, split: str) -> str | None:
        files = {"train": self.cfg.train_file, "valid": self.cfg.valid_file}
        return (files | {"test": self.cfg.test_file}).get(split)

    def _drawn(self, split: str) -> Sequence[Graph]:
        sizes = self.cfg.n_test, self.cfg.n_valid, self.cfg.n_train
        return drawn(split, self.seed, sizes, self.cfg.settings())

    def score(self, problem: Problem, said: str) -> Score:
        return score_prosqa(said, problem.answer)

    def decides(self, problem: Problem) -> tuple[str, str, str]:
        graph = cast(Graph, problem.facts["graph"])
        right, wrong = graph.names[graph.target], graph.names[graph.wrong]
        return problem.answer.partition(right)[0], right, wrong

    def bridges(self, problem: Problem) -> Sequence[str]:
        graph = cast(Graph, problem.facts["graph"])
        return [graph.names[node] for node in shortest_path(graph)[1:-1]]

    def names(self, problem: Problem) -> Sequence[str]:
        return cast(Graph, problem.facts["graph"]).names

    def majority_rate(self, split: str) -> float:
        """Return the accuracy of always choosing the concept in the more common position."""
        first = target_first(self.graphs(split)).mean()
        return float(max(first, 1 - first))

    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of guesses from features that differ between the two concepts.

        The guesses are fitted on training questions from a file, or on graphs drawn like those of
        training.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        graphs = self._guessed_on
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

    @cached_property
    def _guessed_on(self) -> list[Graph]:
        if self.cfg.train_file is not None:
            return self.graphs("train")[:GUESSED]
        # Fewer graphs from the same distribution; drawing the training graphs would take long
        return draw_graphs(GUESSED, self.seed * len(DRAWN) + len(DRAWN), self.cfg.settings())

    @property
    def trained_difficulty(self) -> tuple[int, int]:
        if self.cfg.train_file is not None:
            return super().trained_difficulty
        least, most = self.cfg.hops
        return least, most

    def local_features(self, batch: Batch) -> dict[str, Int[np.ndarray, " batch"]]:
        """Return differences between the first and the second concept, blind to the person."""
        return entity_blind_features(self._asked(batch))

    def to_guess(self, batch: Batch) -> Int[np.ndarray, " batch"]:
        """Return 1 if the answer is the concept that the question names first, else 0."""
        return target_first(self._asked(batch)).astype(np.int64)

    def _asked(self, batch: Batch) -> list[Graph]:
        """Parse the graphs of a batch from its questions."""
        batch = worded_batch(batch)
        rows = zip(batch.tokens.tolist(), batch.prompt.tolist(), strict=True)
        asked = (self._asked_tokens(tokens[:prompt]) for tokens, prompt in rows)
        return [read_question(self.vocabulary.decode(tokens)) for tokens in asked]

    def typed(self, text: str) -> Problem:
        return prosqa_problem(read_question(text), self.cfg.wording)


@lru_cache(maxsize=6)
def drawn(
    split: str, seed: int, sizes: tuple[int, int, int], settings: GraphSettings
) -> Sequence[Graph]:
    """Draw the graphs of a split, without those of earlier splits in the order of `DRAWN`.

    Results are cached because several runs of one task are often analysed together.
    """
    number = DRAWN.index(split)
    seen = {graph for name in DRAWN[:number] for graph in drawn(name, seed, sizes, settings)}
    n = sizes[number]
    graphs = draw_graphs(n + n // 20 + 10, seed * len(DRAWN) + number, settings)
    return [graph for graph in dict.fromkeys(graphs) if graph not in seen][:n]


def _columns(graphs: Sequence[Graph]) -> np.ndarray:
    return np.stack([*entity_blind_features(graphs).values()], axis=1)
