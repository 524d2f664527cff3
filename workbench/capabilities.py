"""Protocols for the capabilities that an analysis or an edit can require of a model.

This project's looped models implement all of them except `CanThink`; its thought models implement
`CanThink`. A third-party model may implement fewer. It then works with every analysis and edit
that requires only those.

All members are methods, properties or plain attributes, because a runtime protocol check looks
for nothing else.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from workbench.hooks.cache import LoopCache
    from workbench.kinds import Kind
    from workbench.words.tokenizer import Vocabulary


@runtime_checkable
class CanRecord(Protocol):
    """A model that runs questions and records its hooks, loop by loop."""

    @property
    def cfg(self) -> Any: ...
    @property
    def kind(self) -> "Kind": ...
    @property
    def device(self) -> torch.device: ...
    @property
    def hook_dict(self) -> Mapping[str, Any]: ...
    @property
    def looped_places(self) -> frozenset[str]: ...
    @property
    def between_places(self) -> frozenset[str]: ...
    @property
    def tokenizer(self) -> "Vocabulary | None": ...
    @property
    def answers(self) -> tuple[str, ...] | None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def hook_points(self) -> Iterable[Any]: ...
    def hooks(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]: ...
    def run_with_cache(self, *args: Any, **kwargs: Any) -> "tuple[Tensor, LoopCache]": ...
    def untrained(self, seed: int = 0) -> Any: ...
    def twin(self) -> Any: ...
    def to_str_tokens(self, tokens: Any) -> list[str]: ...
    def ask(self, question: str) -> dict[str, Tensor]: ...


@runtime_checkable
class CanLoop(CanRecord, Protocol):
    """A model that runs a number of loops and has a readout after each."""

    @property
    def n_loops(self) -> int: ...
    @property
    def max_loops(self) -> int | None: ...
    def readout(self, state: Tensor, **inputs: Any) -> Tensor: ...


@runtime_checkable
class CanIterate(CanLoop, Protocol):
    """A model that can run a single loop from any state."""

    def iterate(self, said: Tensor, loop: int, **inputs: Any) -> Tensor: ...


@runtime_checkable
class CanDecode(CanLoop, Protocol):
    """A model with a vocabulary: states decode to words, and words have embeddings."""

    @property
    def W_E(self) -> Float[Tensor, "d_vocab d_model"]: ...
    def decode(self, state: Tensor) -> Tensor: ...
    def check_vocabulary(self) -> None: ...


@runtime_checkable
class CanThink(CanRecord, Protocol):
    """A model that feeds states back as inputs and answers in words."""

    @property
    def W_E(self) -> Float[Tensor, "d_vocab d_model"]: ...
    def readout(self, state: Tensor) -> Tensor: ...
    def plan(self, tokens: Tensor, attention_mask: Tensor | None) -> Any: ...
    def generate(self, *args: Any, **kwargs: Any) -> Tensor: ...


NEEDED: dict[type, str] = {
    CanThink: "thoughts",
    CanIterate: "a loop that runs alone from any state",
    CanDecode: "a vocabulary and loops",
    CanLoop: "loops",
    CanRecord: "places that are recorded by loop",
}
"""The words for each capability in error messages."""


def has(model: object, capability: type) -> bool:
    """Return whether a model has all members of a capability."""
    return isinstance(model, capability)
