"""Hook points with a loop clock, and hooks that fire only in chosen loops or positions.

A hook name specifies *where* in the weights an activation is read. A looped model passes the same
place several times. Every HookPoint of a model holds the model's `LoopClock`, so a hook can look
up the current loop, and no hook name ever contains a loop number.
"""

from collections.abc import Callable, Collection
from typing import Any, Protocol, cast, no_type_check, runtime_checkable

import torch
import torch.nn.modules.module as torch_modules
from torch import Tensor, nn
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint as TransformerLensHookPoint

from workbench.hooks.clock import LoopClock

__all__ = [
    "AtLoop",
    "AtPosition",
    "HookFn",
    "HookPoint",
    "HookedRootModule",
    "Listener",
    "LoopClock",
    "NamesFilter",
    "at_loop",
    "at_position",
    "is_heard",
    "loop_of",
]

TORCH_CALL = nn.Module.__call__  # the original, before any tool wraps it
PER_QUERY = ("hook_attn_scores", "hook_pattern")  # [batch head query_pos key_pos]
NamesFilter = str | Collection[str] | Callable[[str], bool] | None


class HookPoint(TransformerLensHookPoint):
    """TransformerLens's HookPoint, with a call that is almost free while no hook is attached."""

    clock: LoopClock  # the model's clock, set by the model's `setup`

    def __init__(self) -> None:
        super().__init__()
        self._by_pass: set[int] = set()  # torch's ids of the hooks with a true `by_pass`

    def add_hook(self, hook: Any, dir: Any = "fwd", *args: Any, **kwargs: Any) -> Any:
        """Add a hook as TransformerLens does, and record whether it can run pass by pass."""
        handles = self.fwd_hooks if dir == "fwd" else self.bwd_hooks
        before = {handle.hook.id for handle in handles}
        added = super().add_hook(hook, dir, *args, **kwargs)
        if dir == "fwd" and getattr(hook, "by_pass", False):
            handles = self.fwd_hooks
            self._by_pass |= {handle.hook.id for handle in handles} - before
        return added

    @property
    def wants_whole(self) -> bool:
        """Whether a hook here needs the whole sequence at once, with positions counted from 0."""
        if self._backward_hooks or self._backward_pre_hooks or self._forward_pre_hooks:
            return True
        return any(number not in self._by_pass for number in self._forward_hooks)

    @no_type_check  # the tests check types at every call, which is too slow here
    def __call__(self, tensor: Tensor) -> Tensor:
        if self._backward_hooks or self._backward_pre_hooks or self._forward_pre_hooks:
            return cast(Tensor, super().__call__(tensor))
        if is_watched(self):
            return cast(Tensor, super().__call__(tensor))
        if self._forward_hooks:
            if self._forward_hooks_with_kwargs:
                return cast(Tensor, super().__call__(tensor))
            # What torch does for a module that computes nothing, without torch's overhead
            for hook in tuple(self._forward_hooks.values()):
                changed = hook(self, (tensor,), tensor)
                if changed is not None:
                    tensor = changed
        return tensor


@runtime_checkable
class HookFn(Protocol):
    """A TransformerLens hook: it gets an activation and may return a replacement."""

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None: ...


@no_type_check
def is_watched(module: nn.Module) -> bool:
    """Return whether another tool intercepts module calls (torch's global hooks, a wrapped call).

    A hook point then takes torch's ordinary call path, so that the tool sees its calls too.
    """
    return bool(
        torch_modules._global_forward_hooks
        or torch_modules._global_forward_pre_hooks
        or torch_modules._global_backward_hooks
        or torch_modules._global_backward_pre_hooks
        or nn.Module.__call__ is not TORCH_CALL
        or "forward" in module.__dict__
    )


def loop_of(hook: HookPoint) -> int | None:
    """Return the loop that the hook's model is currently in."""
    return hook.clock.loop


@no_type_check
def is_heard(*hook_points: HookPoint) -> bool:
    """Return whether any of these hook points has a hook; a fused path must then be left."""
    return any(point._forward_hooks or point._backward_hooks for point in hook_points)


class AtLoop:
    """A hook function restricted to some loops; built by `at_loop`."""

    def __init__(self, fn: HookFn, loops: Collection[int]) -> None:
        self.fn = fn
        self.loops = frozenset(loops)
        self.by_pass: bool = getattr(fn, "by_pass", False)

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
        return self.fn(tensor, hook=hook) if loop_of(hook) in self.loops else None

    def __repr__(self) -> str:
        return f"at_loop({self.fn!r}, {sorted(self.loops)})"


def at_loop(fn: HookFn, loops: int | Collection[int]) -> AtLoop:
    """Restrict a TransformerLens hook function to some loops, numbered from 0.

    Example:
        >>> def zero(tensor, hook): return tensor * 0
        >>> hooks = [("blocks.0.hook_attn_out", at_loop(zero, loops=1))]
    """
    return AtLoop(fn, {loops} if isinstance(loops, int) else loops)


class AtPosition:
    """A hook function restricted to some positions; built by `at_position`."""

    by_pass = True

    def __init__(self, fn: HookFn, positions: Collection[int]) -> None:
        self.fn = fn
        self.positions = tuple(positions)
        # Positions that some row had since the hook was last attached to a model
        self.seen: set[int] = set()

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
        axis = 2 if str(hook.name).endswith(PER_QUERY) else 1
        columns = hook.clock.columns
        if columns is None:
            columns = torch.arange(tensor.shape[axis], device=tensor.device)[None]
            columns = columns.expand(len(tensor), -1)
        by_position = tensor.movedim(axis, 1)
        changed = None
        for position in self.positions:
            rows, at = (columns == position).nonzero(as_tuple=True)
            if len(rows):
                self.seen.add(position)
                new = self.fn(by_position[rows, at][:, None].movedim(1, axis), hook=hook)
                if new is not None:
                    changed = by_position if changed is None else changed
                    new = new.movedim(axis, 1)[:, 0]
                    changed = changed.index_put((rows, at), new)
        return None if changed is None else changed.movedim(1, axis)

    def __repr__(self) -> str:
        return f"at_position({self.fn!r}, {list(self.positions)})"


def at_position(fn: HookFn, positions: int | Collection[int]) -> AtPosition:
    """Restrict a TransformerLens hook function to some positions of the sequence.

    The function gets only the rows that have the position, and only that position: `[rows 1 …]`, or
    `[rows head 1 key_pos]` for patterns and scores. With such a hook a model that thinks still uses
    its key-value cache. A plain hook on a block makes it run the whole sequence again for every
    thought.

    Example:
        >>> def zero(tensor, hook): return tensor * 0
        >>> hooks = [("blocks.0.hook_attn_out", at_position(zero, positions=5))]
    """
    return AtPosition(fn, {positions} if isinstance(positions, int) else positions)


class BackwardAtLoop:
    """A backward hook restricted to some loops, built as a forward hook that stores the loop.

    By the time of the backward pass the clock has moved on, so the loop is stored when the value is
    computed. The function is called with the gradient of that loop's value.
    """

    def __init__(self, hook: AtLoop) -> None:
        self.hook = hook

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Tensor | None:
        loop = loop_of(hook)
        if loop not in self.hook.loops or not tensor.requires_grad:
            return None
        own = tensor.view_as(tensor)  # so that the gradient excludes the tensor's other uses

        def act(gradient: Tensor) -> Tensor | None:
            clock = hook.clock
            clock.loop, now = loop, clock.loop
            try:
                return self.hook.fn(gradient, hook=hook)
            finally:
                clock.loop = now

        own.register_hook(act)
        return own


class Listener:
    """A wrapper of a hook function that counts the loops and positions in which it fired."""

    def __init__(self, name: str | Callable[[str], bool], fn: Callable[..., Any]) -> None:
        self.name = name
        self.fn = fn
        inner = fn.hook if isinstance(fn, BackwardAtLoop) else fn
        self.loops = inner.loops if isinstance(inner, AtLoop) else None
        inner = inner.fn if isinstance(inner, AtLoop) else inner
        self.at_position = inner if isinstance(inner, AtPosition) else None
        if self.at_position is not None:
            self.at_position.seen.clear()
        self.by_pass: bool = getattr(fn, "by_pass", False)
        self.firings = 0
        self.fired_in: set[int | None] = set()

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> Any:
        loop = loop_of(hook)
        if self.loops is None or loop in self.loops:
            self.firings += 1
            self.fired_in.add(loop)
        return self.fn(tensor, hook=hook)

    def complaint(self, n_loops: int, between: Collection[str] = ()) -> str | None:
        """Return an error message if a requested loop or position never occurred, else None.

        Args:
            n_loops: Number of loops of the forward pass.
            between: Hooks between loops, which fire one time less.
        """
        place = self.name if isinstance(self.name, str) else "a filter of names"
        missing = sorted(self.loops - self.fired_in) if self.loops else []
        if missing or self.loops == frozenset():
            asked = f"loop {', '.join(map(str, missing))}" if missing else "no loop"
            last = n_loops - 1 - (self.name in between and n_loops > 1)
            ran = f"this pass ran {n_loops} loops, numbered 0 to {last}"
            if last < n_loops - 1:
                ran = f"the place comes {n_loops - 1} times, numbered 0 to {last}"
            return f"the hook on {place} asked for {asked} and never fired there; {ran}"
        if not self.firings:
            return f"the hook on {place} never fired in {n_loops} loops"
        return self._position_complaint(place)

    def _position_complaint(self, place: str) -> str | None:
        if self.at_position is None:
            return None
        missing = [p for p in self.at_position.positions if p not in self.at_position.seen]
        if not missing and self.at_position.positions:
            return None
        asked = f"position {', '.join(map(str, missing))}" if missing else "no position"
        return f"the hook on {place} asked for {asked}, which no row has"
