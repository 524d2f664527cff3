"""Base of VCoT's sequence tasks: splits by depth, and guesses without reasoning.

    train   rows of the training depths
    valid   other rows of some of these depths
    test    rows of the training depths and of deeper ones; `batch.depth` holds the depth

No row occurs in two splits. The first position holds <cls>, where the answer is read.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int, Num
from pydantic import model_validator

from workbench.settings.config import StrictModel
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch, DeepBatch

SPLITS = ("train", "valid", "test")

Tokens = Int[np.ndarray, "batch pos"]
Rows = Int[np.ndarray, " batch"]


class DeepConfig(StrictModel):
    """Depths of each split, rows per depth, and the maximum row length, including <cls>."""

    train_depths: list[int]
    valid_depths: list[int]
    test_depths: list[int]
    n_train: int
    n_valid: int
    n_test: int
    max_length: int = 128
    # `matched` rows come in pairs with opposite answers that counting words cannot tell apart
    version: Literal["paper", "matched"] = "paper"

    @model_validator(mode="after")
    def _check_depths(self) -> "DeepConfig":
        self.check_at_least(1, "n_train", "n_valid", "n_test", "max_length")
        self.check_at_most(10_000, "max_length")
        for split in SPLITS:
            depths = getattr(self, f"{split}_depths")
            if not depths or min(depths) < 1 or len(set(depths)) < len(depths):
                raise ValueError(
                    f"{split}_depths={depths} must be one or more different depths from 1"
                )
        return self

    def rows(self, split: str) -> dict[int, int]:
        """Return the number of rows of a split for each depth."""
        return dict.fromkeys(getattr(self, f"{split}_depths"), getattr(self, f"n_{split}"))


class DeepTask(Task):
    """Base class of yes/no tasks whose difficulty is a depth."""

    cfg: DeepConfig
    readout = "cls"
    unit = "depth"
    no_and_yes: ClassVar[tuple[str, str]]

    @cached_property
    @abstractmethod
    def splits(self) -> Mapping[str, DeepBatch]: ...

    @abstractmethod
    def local_features(self, batch: Batch) -> dict[str, Num[np.ndarray, " batch"]]:
        """Return features of each row that need no reasoning, by name; one number per row."""

    @abstractmethod
    def guesses(self, batch: Batch) -> dict[str, Rows]:
        """Return the answers of rules that do not reason, fitted on the train split, by rule."""

    @property
    def n_ctx(self) -> int:
        return self.cfg.max_length

    @property
    def answers(self) -> Sequence[str]:
        return self.no_and_yes

    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of each rule of `guesses` and of the train split's usual answer."""
        if split not in self._shortcuts:
            batch = self.split(split)
            guesses = self.guesses(batch) | {"commonest answer": np.full(len(batch), self._usual)}
            right = {rule: guess == batch.answer.numpy() for rule, guess in guesses.items()}
            self._shortcuts[split] = {rule: float(hit.mean()) for rule, hit in right.items()}
        return self._shortcuts[split]

    @cached_property
    def _shortcuts(self) -> dict[str, dict[str, float]]:
        return {}

    @cached_property
    def _usual(self) -> int:
        """The most common answer of the train split; 0 (no) on a tie."""
        return int(self.splits["train"].answer.double().mean() > 0.5)

    def _check_length(self, n_tokens: int) -> None:
        if n_tokens > self.cfg.max_length:
            raise ValueError(
                f"the question takes {n_tokens} tokens with its <cls>; max_length is "
                f"{self.cfg.max_length}"
            )


class Table:
    """Lookup table from feature values to their most common answer, with a default if unseen."""

    def __init__(self, seen: Int[np.ndarray, "row feature"], answer: Rows, otherwise: int) -> None:
        self.otherwise = otherwise
        looks, row = np.unique(seen, axis=0, return_inverse=True)
        ayes = np.bincount(row.reshape(-1), answer, len(looks))
        of_all = np.bincount(row.reshape(-1), minlength=len(looks))
        # ties get the default for unseen features
        guess = np.where(2 * ayes == of_all, otherwise, 2 * ayes > of_all)
        self.guess: dict[Hashable, int] = dict(
            zip(map(tuple, looks.tolist()), map(int, guess), strict=True)
        )

    def __call__(self, seen: Int[np.ndarray, "row feature"]) -> Rows:
        guesses = [self.guess.get(tuple(look), self.otherwise) for look in seen.tolist()]
        return np.array(guesses, dtype=np.int64)


def deep_batch(
    tokens: Tokens,
    length: Rows,
    answer: Rows,
    depth: Rows,
    asked: tuple[Rows, Rows] | None = None,
) -> DeepBatch:
    """Build a batch of rows without bridges, whose answer is read at the first token."""
    nowhere = np.zeros(len(tokens), np.int64)
    nothing = np.zeros((len(tokens), 0), np.int64)
    source_at, target_at = asked or (nowhere, nowhere)
    every = {
        "tokens": tokens,
        "length": length,
        "read_at": nowhere,
        "answer": answer,
        "difficulty": depth,
        "bridge": nothing,
        "bridge_at": nothing,
        "source_at": source_at,
        "target_at": target_at,
    }
    kinds = {name: np.ascontiguousarray(values, np.int64) for name, values in every.items()}
    return DeepBatch(**{name: torch.from_numpy(values) for name, values in kinds.items()})


def widened(tokens: Tokens, width: int) -> Int[np.ndarray, "batch width"]:
    """Return the rows padded to a width."""
    return np.pad(tokens, ((0, 0), (0, width - tokens.shape[1])))


def firsts(tokens: Tokens) -> Bool[np.ndarray, " batch"]:
    """Return a mask of the rows that equal no earlier row."""
    narrow = np.ascontiguousarray(tokens, np.uint8)
    rows = narrow.view(np.dtype((np.void, narrow.shape[1])))[:, 0]
    first = np.zeros(len(tokens), bool)
    first[np.unique(rows, return_index=True)[1]] = True
    return first
