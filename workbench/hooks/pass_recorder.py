"""The caching hook of models that think: it joins their passes into one ordinary sequence."""

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from workbench.hooks import HookPoint, LoopClock
from workbench.hooks.cache import LoopCache, PosSlice, Recorder

if TYPE_CHECKING:
    from workbench.models.base import LatentModel


class PassRecorder(Recorder):
    """A recorder that stores the activations of each pass.

    If every pass runs the whole sequence, it keeps only the last pass.
    """

    by_pass = True

    def __init__(
        self,
        clock: LoopClock,
        between: Collection[str],
        device: str | torch.device | None = None,
        remove_batch_dim: bool = False,
        pos_slice: PosSlice = None,
    ) -> None:
        super().__init__(clock, between, between, device, remove_batch_dim, pos_slice)
        self._parts: dict[str, list[Tensor]] = {}  # by hook name, one tensor per pass

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> None:
        name = cast(str, hook.name)
        if name in self.looped_places:
            super().__call__(tensor, hook=hook)
            return
        if self.clock.columns is None or self.clock.loop == 0:
            self._parts[name] = []
        # A copy, because later in-place edits would change the tensor itself
        self._parts[name].append(tensor.detach().clone())

    def finish(self, model: "LatentModel") -> LoopCache:
        passes = self.clock.passes
        for name, parts in self._parts.items():
            whole = parts[0]
            if passes is not None and len(parts) == len(passes.columns):
                fill = -torch.inf if name.endswith("hook_attn_scores") else 0.0
                whole = passes.assemble(parts, name, fill)
            self.once[name] = self._trim(whole, name).to(self.device or whole.device)
        return super().finish(model)

    def _trim(self, record: Tensor, name: str) -> Tensor:
        if name in self.looped_places:  # [batch d_model]: no position axis to slice
            return record[0] if self.remove_batch_dim else record
        return super()._trim(record, name)
