"""Activations of a looped forward pass, with the loop as an axis.

    cache["blocks.0.attn.hook_pattern"]    [loop batch head query_pos key_pos]
    cache["resid_post", -1]                [loop batch pos d_model], TransformerLens's shorthand
    cache["hook_embed"]                    [batch pos d_model]: computed once, so no loop axis
    cache.loop(1)                          an ActivationCache of the second loop alone
    cache.valid                            [loop batch]: which records are real

Places between loops (`recurrence.hook_decoded`, `recurrence.gate.*`) hold one record less; record r
belongs to the step from loop r to loop r + 1.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Bool
from torch import Tensor
from transformer_lens import ActivationCache
from transformer_lens.utilities import Slice, get_act_name

from workbench.hooks import HookPoint, is_heard

if TYPE_CHECKING:
    from workbench.models.base import LatentModel

# What TransformerLens takes for `pos_slice`
PosSlice = Slice | int | tuple[int, ...] | list[int] | Tensor | None
# Places whose axes are [batch pos head d_head]; all others have their (query) position last but one
PER_HEAD = ("hook_q", "hook_k", "hook_v", "hook_z", "hook_rot_q", "hook_rot_k", "hook_result")


class UnknownHook(KeyError):
    """A name for which there is no activation."""

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0])


class LoopCache(Mapping[str, Tensor]):
    """Read-only map from hook name to activation, looped places with a leading loop axis.

    A place's loops are stacked when it is first asked for: until then keeping it costs no copy.
    """

    def __init__(
        self,
        looped: Mapping[str, list[Tensor]],
        once: dict[str, Tensor],
        valid: Bool[Tensor, "loop batch"],
        model: "LatentModel",
    ) -> None:
        self.model = model
        self.valid = valid
        self._looped: dict[str, list[Tensor] | Tensor] = dict(looped)
        self._once = once

    @property
    def n_loops(self) -> int:
        return len(self.valid)

    def __getitem__(self, key: str | tuple[str | int, ...]) -> Tensor:
        name = self.full_name(key)
        if name in self._looped:
            records = self._looped[name]
            if isinstance(records, list):
                records = self._looped[name] = torch.stack(records)
            return records
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
        looped = sum(record.nbytes for records in self._looped.values() for record in records)
        return looped + sum(tensor.nbytes for tensor in self._once.values())

    def has_loop_axis(self, key: str | tuple[str | int, ...]) -> bool:
        """Whether the activation leads with a loop axis."""
        return self.full_name(key) in self._looped

    def loop(self, loop: int) -> ActivationCache:
        """The activations of one loop as TransformerLens holds them, for its own tools.

        `decompose_resid` on it omits what earlier loops wrote: add `recurrence.hook_state_pre`.

        Raises:
            IndexError: There is no such loop.
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
        """Expand TransformerLens's shorthand, `("resid_post", -1)` for one."""
        if isinstance(key, str):
            return key if key in self._looped or key in self._once else get_act_name(key)
        name, layer, *rest = key
        if isinstance(layer, int) and layer < 0:
            layer += self.model.cfg.n_layers
        return get_act_name(cast(str, name), layer, *cast(list[str], rest))


class Recorder:
    """The caching hook: keeps what fires, in lists by place.

    Records are the activations themselves, as TransformerLens's are. Where another hook listens
    too they are copies, for it may edit in place what a place before it has shown.
    """

    def __init__(
        self,
        model: "LatentModel",
        device: str | torch.device | None = None,
        remove_batch_dim: bool = False,
        pos_slice: PosSlice = None,
    ) -> None:
        self.model = model
        self.device = device
        self.remove_batch_dim = remove_batch_dim
        self.pos_slice = Slice.unwrap(cast(Slice, pos_slice)) if pos_slice is not None else None
        # A slice is copied as well, or it would keep the whole activation alive
        self.copies = pos_slice is not None or is_heard(*model.hook_points())
        self.records: dict[str, list[Tensor]] = {}

    def __call__(self, tensor: Tensor, /, *, hook: HookPoint) -> None:
        name = cast(str, hook.name)
        records = self.records.setdefault(name, [])
        count, loop = len(records) + 1, self.model.clock.loop
        if name not in self.model.looped_places:
            if count > 1:
                raise RuntimeError(f"{name} fired {count} times; only places in the loop may")
        elif count != cast(int, loop) + 1:
            raise RuntimeError(f"{name} fired {count} times by loop {loop}; once a loop is right")
        record = self._trim(tensor.detach(), name)
        records.append(record.to(self.device or record.device, copy=self.copies))

    def finish(self) -> LoopCache:
        """The cache of the forward pass that has ended.

        Raises:
            RuntimeError: A place inside the loop did not fire in every loop.
        """
        model = self.model
        looped = {name: r for name, r in self.records.items() if name in model.looped_places}
        for name, records in looped.items():
            wanted = model.clock.n_loops - (name in model.between_places)
            if len(records) != wanted:
                raise RuntimeError(
                    f"{name} fired {len(records)} times for {wanted} records; "
                    "a place in the loop must fire once in every loop"
                )
        once = {name: r[0] for name, r in self.records.items() if name not in looped}
        valid = cast(Tensor, model.clock.valid)
        return LoopCache(looped, once, valid.to(self.device or valid.device), model)

    def _trim(self, record: Tensor, name: str) -> Tensor:
        if self.pos_slice is not None:
            dim = -3 if name.endswith(PER_HEAD) else -2
            record = self.pos_slice.apply(record, dim=dim)
        return record[0] if self.remove_batch_dim else record
