"""The best weights of each stage of a curriculum, by accuracy on the validation questions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from workbench.settings.files import read_tensors, write_tensors

BEST = "best.safetensors"  # best weights of the current stage, in full precision


class BestSteps:
    """Record of the best step of each stage, whose weights are kept in `steps/`.

    The best weights of the latest stage are also kept in full precision.
    """

    def __init__(self, folder: Path, is_kept: Callable[[int], bool]) -> None:
        """Start with no steps recorded.

        Args:
            folder: The run's folder.
            is_kept: Returns whether the weights of a step are kept for another reason.
        """
        self.folder = folder
        self.is_kept = is_kept
        self._found: dict[int, tuple[int, float]] = {}  # stage: (step, accuracy)

    def offer(self, stage: int, step: int, accuracy: float, model: nn.Module) -> None:
        """Keep these weights if they are the best of their stage so far; the first wins a tie."""
        before = self._found.get(stage)
        if before is not None and before[1] >= accuracy:
            return
        if before is not None and not self.is_kept(before[0]):
            self._path(before[0]).unlink(missing_ok=True)
        self._found[stage] = step, accuracy
        write_half(self._path(step), model)
        write_tensors(self.folder / BEST, model.state_dict())

    @property
    def is_settled(self) -> bool:
        """Whether the run's final weights have been chosen."""
        chosen = (self.folder / "model.safetensors").exists()
        return bool(self._found) and chosen and not (self.folder / BEST).exists()

    def last(self) -> dict[str, Tensor] | None:
        """Return the best weights of the last stage, or None if none were measured."""
        path = self.folder / BEST
        return read_tensors(path) if self._found and path.exists() else None

    def plain(self) -> dict[str, Any]:
        """Return the recorded steps as plain data, for the resume point."""
        return {str(stage): list(found) for stage, found in self._found.items()}

    def restore(self, plain: dict[str, Any]) -> None:
        """Restore the recorded steps from a resume point."""
        self._found = {int(stage): (step, accuracy) for stage, (step, accuracy) in plain.items()}

    def tidy(self) -> None:
        """Delete the file that is needed only during training."""
        (self.folder / BEST).unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.folder / "steps" / f"{step}.safetensors"


def write_half(path: Path, model: nn.Module) -> None:
    """Write the weights in bfloat16, half the bytes of float32."""
    write_tensors(path, {name: t.to(torch.bfloat16) for name, t in model.state_dict().items()})
