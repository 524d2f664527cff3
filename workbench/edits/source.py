"""Source of a patch's values: another forward pass, run in the same way as the patched one."""

from typing import Any, cast

import torch
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.edits.base import real_tokens
from workbench.edits.firing import Firing
from workbench.hooks import PER_QUERY, LoopClock
from workbench.hooks.passes import Passes
from workbench.kinds import thought_model
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


class PatchSource:
    """A second forward pass: with another run's model, another question, or the same rows."""

    def __init__(
        self, place: str, run: str | None, question: str | None, model: CanRecord, batch: Batch
    ) -> None:
        self.place = place
        self.same_rows = question is None
        other = model
        if run is not None:
            from workbench.runs import load_run

            other = load_run(run, model.device).model
            if other.kind is not model.kind:
                raise ConfigError(
                    f"patch: run {run!r} is of family {other.cfg.family}, this model of family "
                    f"{model.cfg.family}; one of them thinks and the other loops"
                )
        # A twin has no hooks, so hooks that are open on the model never edit the source
        self.twin = other.twin()
        self.inputs: dict[str, Any] = batch.inputs if question is None else model.ask(question)
        self.real = real_tokens(self.inputs)  # [batch pos] of the source's rows
        self.n_pos = batch.tokens.shape[1]  # columns of the patched batch

    @property
    def is_even(self) -> bool:
        """Whether all rows of the source have their tokens in the same columns."""
        return bool((self.real == self.real[0]).all())

    def values(self, clock: LoopClock) -> Tensor:
        """Run the source with as many loops as the current pass, and return the place's values.

        The shape is [loop batch …], or [batch …] at a place outside the loops.
        """
        options = self._thinking(clock) if self._thinks else self._looping(clock)
        with torch.no_grad():
            _, cache = self.twin.run_with_cache(**self.inputs, **options, names_filter=self.place)
        return cache[self.place]

    @property
    def _thinks(self) -> bool:
        return self.twin.kind.in_passes

    def _thinking(self, clock: LoopClock) -> dict[str, Any]:
        model = thought_model(self.twin)
        if self.place in model.looped_places:
            passes = model.plan(self.inputs["tokens"], self.inputs.get("attention_mask"))
            if not passes.n:
                raise ConfigError(f"patch: the source has no thoughts, so no {self.place}")
        return {"recompute": clock.columns is None}

    def _looping(self, clock: LoopClock) -> dict[str, Any]:
        # A place before the loops fires before the clock has the number of loops
        if not self.place.startswith(("blocks.", "recurrence.", "coda.", "ln_final.")):
            return {"n_loops": 1}
        if self.same_rows:
            return {"n_loops": cast(Tensor, clock.valid).sum(0)}
        return {"n_loops": clock.n_loops}


def shown(values: Tensor, tensor: Tensor, firing: Firing, n_pos: int) -> Tensor:
    """Select the source's values at the columns that one firing receives.

    Columns that the source does not have keep their values.

    Args:
        values: `[batch pos …]`; the batch or position axis may have size 1 and is then expanded.
        tensor: The values to replace.
        firing: The firing, with its columns.
        n_pos: Number of columns of the whole sequence.

    Raises:
        ConfigError: The shapes differ.
    """
    axis = 2 if firing.by_query else 1
    here = [*tensor.shape[1:axis], n_pos, *tensor.shape[axis + 1 :]]
    if firing.by_query:
        here[-1] = n_pos
    try:
        values = values.expand(len(tensor), *here)
    except RuntimeError:
        raise ConfigError(
            f"patch: {firing.place} is {list(values.shape[1:])} in a row of its source and "
            f"{here} here"
        ) from None
    columns = cast(Tensor, firing.columns)
    known = (columns >= 0) & (columns < n_pos)
    rows = torch.arange(len(columns), device=columns.device)[:, None]
    taken = values.movedim(axis, 1)[rows, torch.where(known, columns, 0)]  # [batch width …]
    if firing.by_query:
        taken = _by_key(taken, tensor.shape[-1], firing)
    known = known.view(*known.shape, *[1] * (taken.ndim - 2))
    return torch.where(known, taken, tensor.movedim(axis, 1)).movedim(1, axis)


def _by_key(values: Tensor, n_keys: int, firing: Firing) -> Tensor:
    """Select the keys that the pass has, in its order, from `[batch query head key]`."""
    keys = torch.arange(n_keys, device=values.device).expand(len(values), -1)
    if firing.clock.columns is not None:
        passes, given = cast(Passes, firing.clock.passes), firing.clock.given
        ran = passes.keys(cast(int, firing.clock.loop))
        appended = (given or 0) + torch.arange(n_keys - ran.shape[1], device=values.device)
        keys = torch.cat((ran, appended.expand(len(ran), -1)), dim=1)
    known = (keys >= 0) & (keys < values.shape[-1])
    index = torch.where(known, keys, 0)[:, None, None].expand(*values.shape[:-1], -1)
    fill = 0.0 if firing.place.endswith(PER_QUERY[1]) else -torch.inf
    return values.gather(-1, index).masked_fill(~known[:, None, None], fill)
