"""What every task gives: seeded splits, a vocabulary, and how well one does unthinking."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from workbench.kinds import LOOPS, Kind
from workbench.settings.config import ConfigError, StrictModel, nearest
from workbench.tasks.batch import Batch
from workbench.words.tokenizer import Vocabulary

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from workbench.settings.recipe import CurriculumConfig

Self = TypeVar("Self", bound="Task")


class Task(ABC):
    """Questions with answers, in splits; the same for the same parameters and seed anywhere."""

    Config: ClassVar[type[StrictModel]]
    perception: ClassVar[str] = "causal"
    """How a model takes the question in; one of `components.perception.PERCEPTIONS`."""
    readout: ClassVar[str] = "vocabulary"
    """How a model gives the answer; one of `components.readout.READOUTS`."""
    unit: ClassVar[str] = "hops"
    """What `batch.difficulty` counts."""
    kind: ClassVar[Kind] = LOOPS
    """Which kind of model answers: one that loops is read after each loop; one that thinks says its
    answer in words."""
    too_long: ClassVar[str] = ""
    """What may be done where questions are too long for a model, if anything."""
    vocabulary: Vocabulary
    left_out: Mapping[str, int] = MappingProxyType({})
    """Questions of each split that are too long, as far as they were read."""

    def __init__(self, cfg: StrictModel, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"seed={seed} must be at least 0")
        self.cfg = cfg
        self.seed = seed
        self._best_shortcuts: dict[str, float] = {}

    @property
    @abstractmethod
    def splits(self) -> Mapping[str, Batch]:
        """All rows of every split."""

    @property
    @abstractmethod
    def n_ctx(self) -> int:
        """Positions that the longest question needs."""

    @abstractmethod
    def shortcuts(self, split: str) -> dict[str, float]:
        """Accuracy of the best guess from part of the question alone, by what it looks at."""

    def local_features(self, batch: Batch) -> dict[str, np.ndarray]:
        """Numbers of each row, by name, that can be told without reasoning: `[batch]` each.

        Raises:
            ValueError: The task names none.
        """
        raise ValueError(
            f"{type(self).__name__} names no features that can be told without reasoning"
        )

    def to_guess(self, batch: Batch) -> Int[np.ndarray, " batch"]:
        """What a guess from `local_features` has to tell of each row: by default its answer."""
        return np.asarray(batch.answer)

    @abstractmethod
    def question(self, text: str) -> Batch:
        """One typed question as a batch of one row, with whatever the task knows of it.

        Raises:
            ValueError: The text is empty, has an unknown word, or is no question of this task.
        """

    @property
    def d_vocab(self) -> int:
        return len(self.vocabulary)

    @property
    def answers(self) -> Sequence[str]:
        """The words that answers may be, by the numbers that stand for them in a batch."""
        return self.vocabulary.words

    @property
    def split_names(self) -> Sequence[str]:
        """The splits that there are."""
        return list(self.splits)

    @property
    def shape(self) -> dict[str, Any]:
        """Fields of a model's config that follow from the task."""
        return {"d_vocab": self.d_vocab, "n_ctx": self.n_ctx}

    def as_taught(self: Self, curriculum: "CurriculumConfig | None") -> Self:
        """Return the task as training by a curriculum leaves it; most know none."""
        return self

    def with_file(self: Self, path: Path, n_ctx: int) -> Self:
        """Return the task with the questions of an official file beside its splits.

        Raises:
            ConfigError: The task reads no files.
        """
        raise ConfigError(f"--file is for tasks in words; {type(self).__name__} is not")

    def unsayable(self, split: str) -> int:
        """Count the questions of a split whose answer the vocabulary cannot express."""
        return 0

    @property
    def default_split(self) -> str:
        """The split that a run is judged on."""
        return next(name for name in ("test_id", "test") if name in self.splits)

    @property
    def trained_difficulty(self) -> tuple[int, int]:
        """Least and greatest difficulty that training shows."""
        levels = [rows.difficulty for name, rows in self.splits.items() if "train" in name]
        return min(int(n.min()) for n in levels), max(int(n.max()) for n in levels)

    def split(self, name: str) -> Batch:
        """All rows of a split.

        Raises:
            ValueError: There is no such split.
        """
        if name not in self.splits:
            raise ValueError(f"no split {name!r}; {nearest(name, self.splits)}")
        return self.splits[name]

    def batch(self, split: str, n: int, seed: int = 0) -> Batch:
        """`n` rows of a split, drawn without replacement; all of them if it has fewer.

        Raises:
            ValueError: There is no such split, n is below 1, or seed below 0.
        """
        if n < 1:
            raise ValueError(f"n={n} must be at least 1")
        if seed < 0:
            raise ValueError(f"seed={seed} must be at least 0")
        rows = self.split(split)
        chosen = np.random.default_rng(seed).permutation(len(rows))[:n]
        return rows[torch.from_numpy(chosen)].trimmed()

    def majority_rate(self, split: str) -> float:
        """Accuracy of always giving the split's commonest answer."""
        answers: Tensor = self.split(split).answer
        return float(answers.bincount().max() / len(answers))

    @cached_property
    def bridge_words(self) -> tuple[int, ...]:
        """Tokens that are a bridge in some row: what a control may put in a bridge's place."""
        found = torch.cat([rows.bridge.flatten() for rows in self.splits.values()]).unique()
        return tuple(found[found >= 0].tolist())

    def best_shortcut(self, split: str) -> float:
        """Accuracy of the best of the split's shortcuts; worked out once."""
        if split not in self._best_shortcuts:
            self._best_shortcuts[split] = max(self.shortcuts(split).values())
        return self._best_shortcuts[split]

    def dataset(self, split: str) -> "Dataset":
        """A split as a `datasets.Dataset` of words."""
        from datasets import Dataset

        return Dataset.from_list(self.examples(self.split(split)))

    def datasets(self) -> "DatasetDict":
        """All splits as a `datasets.DatasetDict`."""
        from datasets import DatasetDict

        return DatasetDict({split: self.dataset(split) for split in self.splits})

    def draw(self, split: str, seed: int) -> str:
        """A question of a split, as it may be typed."""
        return str(self.examples(self.batch(split, 1, seed))[0]["question"])

    def examples(self, batch: Batch) -> list[dict[str, object]]:
        """Rows in words: question, answer, bridges, difficulty under its own name."""
        words = self.vocabulary.words
        rows = []
        for row in range(len(batch)):
            length = int(batch.length[row])
            bridges = [words[b] for b in batch.bridge[row].tolist() if b >= 0]
            rows.append(
                {
                    "question": self.vocabulary.decode(batch.tokens[row, :length].tolist()),
                    "answer": self.answers[int(batch.answer[row])],
                    "bridges": bridges,
                    self.unit: int(batch.difficulty[row]),
                }
            )
        return rows
