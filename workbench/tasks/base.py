"""Base class of all tasks: seeded splits, a vocabulary, and baselines that do not reason."""

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
    """Questions with answers, in splits; fully determined by the config and the seed."""

    Config: ClassVar[type[StrictModel]]
    perception: ClassVar[str] = "causal"
    """How a model embeds the question; one of `components.perception.PERCEPTIONS`."""
    readout: ClassVar[str] = "vocabulary"
    """How a model outputs the answer; one of `components.readout.READOUTS`."""
    unit: ClassVar[str] = "hops"
    """Unit of `batch.difficulty`."""
    kind: ClassVar[Kind] = LOOPS
    """Kind of model that the task needs: a looped model is read after each loop; a model with
    thoughts generates its answer as text."""
    too_long: ClassVar[str] = ""
    """Hint for the error raised when questions are too long for a model; may be empty."""
    vocabulary: Vocabulary
    left_out: Mapping[str, int] = MappingProxyType({})
    """Number of too-long questions in each split, for the splits read so far."""

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
        """Number of positions that the longest question needs."""

    @abstractmethod
    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of the best guess from each part of the question, by the part."""

    def local_features(self, batch: Batch) -> dict[str, np.ndarray]:
        """Return features that can be computed without reasoning, by name: `[batch]` each.

        Raises:
            ValueError: The task defines none.
        """
        raise ValueError(
            f"{type(self).__name__} names no features that can be told without reasoning"
        )

    def to_guess(self, batch: Batch) -> Int[np.ndarray, " batch"]:
        """Return the label that a guess from `local_features` predicts; by default the answer."""
        return np.asarray(batch.answer)

    @abstractmethod
    def question(self, text: str) -> Batch:
        """Parse a typed question into a batch of one row, with all fields the task can fill in.

        Raises:
            ValueError: The text is empty, has an unknown word, or is not a question of this task.
        """

    @property
    def d_vocab(self) -> int:
        return len(self.vocabulary)

    @property
    def answers(self) -> Sequence[str]:
        """The possible answers as words, indexed by the values of `batch.answer`."""
        return self.vocabulary.words

    @property
    def split_names(self) -> Sequence[str]:
        """Names of the splits."""
        return list(self.splits)

    @property
    def shape(self) -> dict[str, Any]:
        """Fields of a model's config that the task determines."""
        return {"d_vocab": self.d_vocab, "n_ctx": self.n_ctx}

    def as_taught(self: Self, curriculum: "CurriculumConfig | None") -> Self:
        """Return the task as it is at the end of a curriculum; most tasks have no curriculum."""
        return self

    def with_file(self: Self, path: Path, n_ctx: int) -> Self:
        """Return the task with the questions of an official file as an additional split.

        Raises:
            ConfigError: The task cannot read files.
        """
        raise ConfigError(f"--file is for tasks in words; {type(self).__name__} is not")

    def unsayable(self, split: str) -> int:
        """Count the questions of a split whose answer the vocabulary cannot express."""
        return 0

    @property
    def default_split(self) -> str:
        """Name of the split that a run is evaluated on by default."""
        return next(name for name in ("test_id", "test") if name in self.splits)

    @property
    def trained_difficulty(self) -> tuple[int, int]:
        """Least and greatest difficulty in the training data."""
        levels = [rows.difficulty for name, rows in self.splits.items() if "train" in name]
        return min(int(n.min()) for n in levels), max(int(n.max()) for n in levels)

    def split(self, name: str) -> Batch:
        """Return all rows of a split.

        Raises:
            ValueError: There is no such split.
        """
        if name not in self.splits:
            raise ValueError(f"no split {name!r}; {nearest(name, self.splits)}")
        return self.splits[name]

    def batch(self, split: str, n: int, seed: int = 0) -> Batch:
        """Draw `n` rows of a split without replacement; all rows if the split has fewer.

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
        """Return the accuracy of always giving the split's most common answer."""
        answers: Tensor = self.split(split).answer
        return float(answers.bincount().max() / len(answers))

    @cached_property
    def bridge_words(self) -> tuple[int, ...]:
        """Token ids that are a bridge in some row; controls replace a bridge with one of these."""
        found = torch.cat([rows.bridge.flatten() for rows in self.splits.values()]).unique()
        return tuple(found[found >= 0].tolist())

    def best_shortcut(self, split: str) -> float:
        """Return the accuracy of the split's best shortcut; the result is cached."""
        if split not in self._best_shortcuts:
            self._best_shortcuts[split] = max(self.shortcuts(split).values())
        return self._best_shortcuts[split]

    def dataset(self, split: str) -> "Dataset":
        """Return a split as a `datasets.Dataset` of words."""
        from datasets import Dataset

        return Dataset.from_list(self.examples(self.split(split)))

    def datasets(self) -> "DatasetDict":
        """Return all splits as a `datasets.DatasetDict`."""
        from datasets import DatasetDict

        return DatasetDict({split: self.dataset(split) for split in self.splits})

    def draw(self, split: str, seed: int) -> str:
        """Draw a question of a split, as text that `question` accepts."""
        return str(self.examples(self.batch(split, 1, seed))[0]["question"])

    def examples(self, batch: Batch) -> list[dict[str, object]]:
        """Return rows in words: question, answer, bridges, and the difficulty keyed by its unit."""
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
