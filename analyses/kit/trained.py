"""The task and loops that a model was trained on, and the accuracy of guessing on that task."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from workbench.runs import Run
from workbench.tasks import Task
from workbench.tasks.batch import Batch

FITTED = 4_000  # rows of each training split that a guess is fitted on


@dataclass(frozen=True, eq=False)
class Shortcut:
    """The best guess without reasoning, and its accuracy at each difficulty."""

    name: str
    accuracy: Float[Tensor, " difficulty"]


@dataclass(frozen=True, eq=False)
class Trained:
    """The task that a model was trained on, and the number of loops in training."""

    task: Task
    loops: tuple[int, int]
    """The fewest and the most loops that a training batch ran."""
    split: str | None = None
    """The split that an analysis runs on; None for a typed question."""

    @classmethod
    def of(cls, run: Run, split: str | None = None) -> "Trained":
        """Return the task and loops that a run was trained on."""
        loops = run.recipe.training.loops
        if isinstance(loops, list):
            return cls(run.task, (loops[0], loops[1]), split)
        most = run.trained_loops
        return cls(run.task, (1 if loops == "hops" else most, most), split)

    def shortcut(self, batch: Batch) -> Shortcut | None:
        """Measure the accuracy of guessing without reasoning, by difficulty of the rows.

        The guess is a boosted tree on all local features that the task defines, fitted on training
        rows. If the task defines none, it is the best of the task's own shortcuts, whose accuracy
        is known only for the whole split; without a split there is no guess.
        """
        batch = batch.to("cpu")
        levels = batch.difficulty.unique()
        try:
            features = self.task.local_features(batch)
        except ValueError:  # the task defines no local features
            if self.split is None:
                return None
            guesses = self.task.shortcuts(self.split)
            best = max(guesses, key=lambda name: guesses[name])
            return Shortcut(f"{best}, whole split", torch.full((len(levels),), guesses[best]))
        right = torch.from_numpy(self._guess(features) == batch.answer.numpy())
        shares = [right[batch.difficulty == level].float().mean() for level in levels]
        return Shortcut("boosted tree on local features", torch.stack(shares))

    def _guess(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Fit a boosted tree on training rows and return its answers."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        names = [name for name in self.task.splits if "train" in name]
        rows = Batch.cat([self.task.batch(name, FITTED) for name in names])
        tree = HistGradientBoostingClassifier(random_state=0)
        tree.fit(_columns(self.task.local_features(rows)), rows.answer.numpy())
        return np.asarray(tree.predict(_columns(features)))


def _columns(features: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack(list(features.values())).astype(float)
