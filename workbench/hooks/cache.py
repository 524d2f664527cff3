"""Cached activations of a looped forward pass, with the loop as an axis.

    cache["blocks.0.attn.hook_pattern"]    [loop batch head query_pos key_pos]
    cache["resid_post", -1]                [loop batch pos d_model], TransformerLens's shorthand
    cache["hook_embed"]                    [batch pos d_model]: computed once, so no loop axis
    cache.loop(1)                          an ActivationCache of the second loop only
    cache.valid                            [loop batch]: which records are real

Hooks between loops (`recurrence.hook_decoded`, `recurrence.gate.*`) have one record less; record r
belongs to the step from loop r to loop r + 1.
"""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Bool
from torch import Tensor
from transformer_lens import ActivationCache
from transformer_lens.utilities import Slice, get_act_name

from workbench.hooks import HookPoint, LoopClock

if TYPE_CHECKING:
    from workbench.models.base import LatentModel

# The types that TransformerLens accepts as `pos_slice`
PosSlice = Slice | int | tuple[int, ...] | list[int] | Tensor | None
# Hooks with axes [batch pos head d_head]; in all others the (query) position is the second last
PER_HEAD = (
    *("hook_q", "hook_k", "hook_v", "hook_z", "hook_rot_q", "hook_rot_k", "hook_result"),
    *("q_norm.hook_scale", "q_norm.hook_normalized", "k_norm.hook_scale", "k_norm.hook_normalized"),
)


class UnknownHook(KeyError):
    """Raised for a hook name that is not in the cache."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class LoopCache(Mapping[str, Tensor]):
    """A read-only map from hook name to activation; looped hooks have a leading loop axis."""

    def __init__(
        self,
        looped: dict[str, Tensor],
        once: dict[str, Tensor],
        valid: Bool[Tensor, "loop batch"],
        model: "LatentModel",
    ) -> None:
        self.model = model
        self.valid = valid
        self._looped = looped
        self._once = once

    @property
    def n_loops(self) -> int:
        return len(self.valid)

    def __getitem__(self, key: str | tuple[str | int, ...]) -> Tensor:
        name = self.full_name(key)
        if name in self._looped:
            return self._looped[name]
        if name in self._once:
            return self._once[name]
        near = get_close_matches(name, list(self), n=3)
        raise UnknownHook(
            f"no activation {name!r} in this cache of {len(self)}"
            + (f"; nearest: {', '.join(near)}" if near else "")
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._once
        yield from self._looped

    def __len__(self) -> int:
        return len(self._once) + len(self._looped)

    def __contains__(self, key: object) -> bool:
        name = self.full_name(cast(str, key))
        return name in self._looped or name in self._once

    def __repr__(self) -> str:
        looped, once = len(self._looped), len(self._once)
        return f"LoopCache({self.n_loops} loops, {looped} looped + {once} once)"

    @property
    def nbytes(self) -> int:
        """Size of all records in bytes."""
        return sum(tensor.nbytes for tensor in self.values())

    def has_loop_axis(self, key: str | tuple[str | int, ...]) -> bool:
        """Return whether the activation has a leading loop axis."""
        return self.full_name(key) in self._looped

    def loop(self, loop: int) -> ActivationCache:
        """Return the activations of one loop as an ActivationCache, for TransformerLens's tools.

        Its `decompose_resid` omits what earlier loops wrote to the residual stream: add
        `recurrence.hook_state_pre`.

        Raises:
            IndexError: The loop is out of range.
        """
        if not -self.n_loops <= loop < self.n_loops:
            raise IndexError(
                f"loop {loop} of a cache with {self.n_loops} loops, numbered 0 to "
                f"{self.n_loops - 1}"
            )
        loop %= self.n_loops
        records = {name: t[loop] for name, t in self._looped.items() if loop < len(t)}
        return ActivationCache(self._once | records, self.model)

    def full_name(self, key: str | tuple[str | int, ...]) -> str:
        """Expand TransformerLens's shorthand, for example `("resid_post", -1)`."""
        if isinstance(key, str):
            return key if key in self._looped or key in self._once else get_act_name(key)
        name, layer, *rest = key
        if isinstance(layer, int) and layer < 0:
            layer += self.model.cfg.n_layers
        return get_act_name(cast(str, name), layer, *cast(list[str], rest))


class Recorder:
    """The caching hook: copies each activation into its loop's row of a preallocated tensor."""

    def __init__(
        self,
        clock: LoopClock,
        looped: Collection[str],
        between: Collection[str],
        device: str | torch.device | None = None,
        remove_batch_dim: bool = False,
        pos_slice: PosSlice = None,
    ) -> None:
        self.clock = clock
        self.looped_places = frozenset(looped)
        self.between_places = frozenset(between)
        self.device = device
        self.remove_batch_dim = remove_batch_dim
        self.pos_slice = Slice.unwrap(cast(Slice, pos_slice)) if pos_slice is not None else None
        self.looped: dict[str, Tensor] = {}
        self.once: dict[str, Tensor] = {}
        self.firings: dict[str, int] = {}
        self._rows: dict[str, tuple[Tensor, ...]] = {}  # views of `looped`, one per loop

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> None:
        name = cast(str, hook.name)
        record = self._trim(tensor.detach(), name)
        count = self.firings[name] = self.firings.get(name, 0) + 1
        if name not in self.looped_places:
            if count > 1:
                raise RuntimeError(f"{name} fired {count} times; only places in the loop may")
            # A copy, because later in-place edits would change the tensor itself
            self.once[name] = record.to(self.device or record.device, copy=True)
            return
        loop = cast(int, self.clock.loop)
        if count != loop + 1:
            raise RuntimeError(f"{name} fired {count} times by loop {loop}; once a loop is right")
        if loop == 0:
            rows = self.clock.n_loops - (name in self.between_places)
            self.looped[name] = torch.empty(
                (rows, *record.shape), dtype=record.dtype, device=self.device or record.device
            )
            self._rows[name] = self.looped[name].unbind()
        self._rows[name][loop].copy_(record)

    def finish(self, model: "LatentModel") -> LoopCache:
        """Return the cache of the forward pass that has just ended.

        Raises:
            RuntimeError: A hook inside the loop did not fire in every loop.
        """
        for name, records in self.looped.items():
            if self.firings[name] != len(records):
                raise RuntimeError(
                    f"{name} fired {self.firings[name]} times for {len(records)} records; "
                    "a place in the loop must fire once in every loop"
                )
        valid = cast(Tensor, self.clock.valid)
        return LoopCache(self.looped, self.once, valid.to(self.device or valid.device), model)

    def _trim(self, record: Tensor, name: str) -> Tensor:
        if self.pos_slice is not None:
            dim = -3 if name.endswith(PER_HEAD) else -2
            record = self.pos_slice.apply(record, dim=dim)
        return record[0] if self.remove_batch_dim else record
