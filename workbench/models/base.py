"""Base class of all models: TransformerLens hook names, the loop clock and the cache."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from workbench.components.block import Block
from workbench.components.embed import Embed, PosEmbed, TiedUnembed, Unembed
from workbench.components.norm import norm
from workbench.components.perception import PERCEPTIONS
from workbench.components.readout import READOUTS
from workbench.hooks import (
    AtLoop,
    BackwardAtLoop,
    HookPoint,
    Listener,
    LoopClock,
    NamesFilter,
)
from workbench.hooks.cache import LoopCache, PosSlice, Recorder, UnknownHook
from workbench.kinds import Kind
from workbench.models.fresh import fresh
from workbench.models.names import NamedModel
from workbench.settings.config import ConfigError, ModelConfig, nearest
from workbench.words.tokenizer import Vocabulary

Hooks = Sequence[tuple[str | Callable[[str], bool], Callable[..., Any]]]

Model = TypeVar("Model", bound="LatentModel")
Part = TypeVar("Part")


def part(parts: Mapping[str, Part], name: str, kind: str) -> Part:
    """Return a perception or a readout by name.

    Raises:
        ConfigError: No part has this name.
    """
    if name not in parts:
        raise ConfigError(f"no {kind} {name!r}; {nearest(name, parts)}")
    return parts[name]


class LatentModel(NamedModel, ABC):
    """A transformer with hooks on its recurrence as well as on its layers.

    A family's `__init__` must end with `self.setup()`, and its `forward` must iterate over
    `self.clock.ticks(n_loops)`. `tests/workbench/test_families.py` checks this contract.
    """

    Config: ClassVar[type[ModelConfig]]
    kind: ClassVar[Kind]
    """Whether the family loops (depth recurrence) or thinks (thought recurrence)."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.clock = LoopClock()
        self.tokenizer: Vocabulary | None = None
        self.answers: tuple[str, ...] | None = None  # label of each answer index
        # The task's parser from a typed question to model inputs. A function, so deepcopy shares it
        self.reader: Callable[[str], dict[str, Tensor]] | None = None
        self.embed = Embed(cfg)
        self.hook_embed = HookPoint()  # [batch pos d_model]
        if cfg.positional_embedding_type == "standard":
            self.pos_embed = PosEmbed(cfg)
            self.hook_pos_embed = HookPoint()  # [batch pos d_model]
        self.perception = part(PERCEPTIONS, cfg.perception, "perception")(cfg)
        self.prelude = nn.ModuleList(Block(cfg) for _ in range(cfg.n_prelude))
        self.blocks = nn.ModuleList(self.make_block() for _ in range(cfg.n_layers))
        self.coda = nn.ModuleList(Block(cfg) for _ in range(cfg.n_coda))
        head = part(READOUTS, cfg.readout, "readout")
        self.head = None if head is None else head(cfg)
        if self.head is None:
            self.ln_final = norm(cfg)
            self.unembed = TiedUnembed(cfg.readout_scale) if cfg.tie_embeddings else Unembed(cfg)

    def setup(self) -> None:
        """Name every hook point and attach the clock to it."""
        super().setup()
        for hook_point in self.hook_points():
            hook_point.clock = self.clock

    def make_block(self) -> nn.Module:
        """Build one layer of the looped blocks."""
        return Block(self.cfg)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logits for a batch of inputs."""

    @property
    @abstractmethod
    def looped_places(self) -> frozenset[str]:
        """Names of the hooks that fire once per loop; all others fire once per forward pass."""

    @property
    @abstractmethod
    def between_places(self) -> frozenset[str]:
        """Names of the looped hooks that fire only between loops, so K − 1 times in K loops."""

    # -- hooks, with a check that they fire; caches, with a loop axis

    @contextmanager
    def hooks(
        self,
        fwd_hooks: Hooks = (),
        bwd_hooks: Hooks = (),
        reset_hooks_end: bool = True,
        clear_contexts: bool = False,
        must_fire: bool = True,
    ) -> Iterator["LatentModel"]:
        """Add hooks temporarily, as TransformerLens's `hooks` does.

        Unless `must_fire` is False, each forward hook must fire, and must do so in every loop and
        position that its `at_loop` or `at_position` names. `at_loop` also restricts backward hooks.

        Raises:
            UnknownHook: A name is not a hook of this model, or a filter matches no hook.
            RuntimeError: A forward pass ran and a hook did not fire where it should have, or
                another thread is using the model.
        """
        for name, _ in (*fwd_hooks, *bwd_hooks):
            self._check_place(name)
        listeners = [Listener(name, fn) for name, fn in fwd_hooks]
        plain = [(name, fn) for name, fn in bwd_hooks if not isinstance(fn, AtLoop)]
        for name, fn in bwd_hooks:
            if isinstance(fn, AtLoop):
                listeners.append(Listener(name, BackwardAtLoop(fn)))
        before = self.clock.forwards
        with (
            self.clock.held(),
            super().hooks(
                [(listener.name, listener) for listener in listeners],
                plain,
                reset_hooks_end,
                clear_contexts,
            ),
        ):
            yield self
            if must_fire and self.clock.forwards > before:
                self._check_fired(listeners)

    def _check_fired(self, listeners: Sequence[Listener]) -> None:
        for listener in listeners:
            complaint = listener.complaint(self.clock.n_loops, self.between_places)
            if complaint is not None:
                raise RuntimeError(complaint)
            judge = getattr(listener.fn, "judge", None)  # only the hooks of edits have one
            if judge is not None:
                judge()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`; only one thread at a time may call the model.

        Raises:
            RuntimeError: Another thread is using the model.
        """
        with self.clock.held():
            return super().__call__(*args, **kwargs)

    def add_hook(self, *args: Any, **kwargs: Any) -> None:
        with self.clock.held():
            super().add_hook(*args, **kwargs)

    def reset_hooks(self, *args: Any, **kwargs: Any) -> None:
        with self.clock.held():
            super().reset_hooks(*args, **kwargs)

    def run_with_hooks(
        self,
        *args: Any,
        fwd_hooks: Hooks = (),
        bwd_hooks: Hooks = (),
        reset_hooks_end: bool = True,
        clear_contexts: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        """Run `forward` with temporary hooks; see `hooks` for the errors.

        With `bwd_hooks`, set `reset_hooks_end=False` and call `reset_hooks()` after the backward
        pass. Otherwise the hooks would be removed before it starts, which is an error.
        """
        if bwd_hooks and reset_hooks_end:
            raise ValueError(
                "bwd_hooks are removed before a backward pass can run; "
                "set reset_hooks_end=False, or open model.hooks(...) around both passes"
            )
        with self.hooks(fwd_hooks, bwd_hooks, reset_hooks_end, clear_contexts):
            return cast(Tensor, self(*args, **kwargs))

    def run_with_cache(  # type: ignore[override]  # narrower kinds of pos_slice
        self,
        *args: Any,
        names_filter: NamesFilter = None,
        device: str | torch.device | None = None,
        remove_batch_dim: bool = False,
        incl_bwd: bool = False,
        reset_hooks_end: bool = True,
        clear_contexts: bool = False,
        pos_slice: PosSlice = None,
        **kwargs: Any,
    ) -> tuple[Tensor, LoopCache]:
        """Run `forward` and cache the activations at the hooks, loop by loop.

        Args:
            *args: As for `forward`.
            names_filter: A hook name, several names, or a predicate on names; all hooks by default.
            device: Device that stores the activations; by default, the device that computed them.
            remove_batch_dim: Drop the batch axis; the batch must have exactly one row.
            incl_bwd: Not supported; open `model.hooks(bwd_hooks=...)` around both passes instead.
            reset_hooks_end: Must be True, because a cache covers one forward pass.
            clear_contexts: As in TransformerLens.
            pos_slice: Positions to keep, as in TransformerLens.
            **kwargs: As for `forward`.

        Returns:
            The logits, and the cache with the loop as its first axis.

        Raises:
            UnknownHook: A name is not a hook of this model, or a filter matches no hook.
            RuntimeError: A named hook did not fire.
        """
        if incl_bwd:
            raise ValueError("incl_bwd keeps one loop only; use model.hooks(bwd_hooks=...)")
        if not reset_hooks_end:
            raise ValueError("run_with_cache always removes its hooks; use model.hooks(...)")
        recorder = self.make_recorder(device, remove_batch_dim, pos_slice)
        with self.hooks(self._caching_hooks(names_filter, recorder), (), True, clear_contexts):
            logits = cast(Tensor, self(*args, **kwargs))
            if remove_batch_dim and cast(Tensor, self.clock.valid).shape[1] != 1:
                raise ValueError("remove_batch_dim needs a batch of one row")
        return logits, recorder.finish(self)

    def make_recorder(
        self, device: str | torch.device | None, remove_batch_dim: bool, pos_slice: PosSlice
    ) -> Recorder:
        """Build the caching hook for one forward pass."""
        return Recorder(
            self.clock, self.looped_places, self.between_places, device, remove_batch_dim, pos_slice
        )

    def _caching_hooks(self, names: NamesFilter, recorder: Recorder) -> Hooks:
        if names is None:
            return [(lambda name: True, recorder)]
        if callable(names):
            return [(names, recorder)]
        named = [names] if isinstance(names, str) else dict.fromkeys(names)  # each name once
        return [(name, recorder) for name in named]

    def _check_place(self, name: str | Callable[[str], bool]) -> None:
        if callable(name):
            if not any(map(name, self.hook_dict)):
                raise UnknownHook("the filter of names matches no hook of this model")
        elif name not in self.hook_dict:
            raise UnknownHook(f"this model has no hook {name!r}; {nearest(name, self.hook_dict)}")

    def unembedded(self, normed: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes d_vocab"]:
        """Return the logits of states that have passed the final norm; no hooks fire."""
        if isinstance(self.unembed, TiedUnembed):
            return self.unembed.plain(normed, self.embed.W_E)
        return self.unembed.plain(normed)

    def unembed_hooked(
        self, normed: Float[Tensor, "*axes d_model"]
    ) -> Float[Tensor, "*axes d_vocab"]:
        """Return the same logits, and fire `unembed.hook_in` and `unembed.hook_out`.

        Used at the end of a forward pass.
        """
        if isinstance(self.unembed, TiedUnembed):
            return cast(Tensor, self.unembed(normed, self.embed.W_E))
        return cast(Tensor, self.unembed(normed))

    # -- copies

    def twin(self: Model) -> Model:
        """Return a copy that shares the weights but has its own hooks and clock."""
        shared = [*self.parameters(), *self.buffers()]
        twin = copy.deepcopy(self, {id(tensor): tensor for tensor in shared})
        for hook_point in twin.hook_points():
            hook_point.fwd_hooks, hook_point.bwd_hooks = [], []
            hook_point._forward_hooks.clear()
            hook_point._backward_hooks.clear()
        return twin

    def untrained(self: Model, seed: int = 0) -> Model:
        """Return a model with the same config and fresh weights, the control of many analyses."""
        model = fresh(lambda: type(self)(self.cfg), seed).to(self.device)
        model.tokenizer, model.answers, model.reader = self.tokenizer, self.answers, self.reader
        return model.eval()
