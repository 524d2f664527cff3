"""`Result`, the return type of every analysis: numbers with a figure, a table and a summary."""

import dataclasses
import math
import typing
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class Result(ABC):
    """Numbers of one analysis.

    Subclasses are frozen dataclasses whose field types name their axes.
    """

    @abstractmethod
    def figure(self) -> "go.Figure":
        """Draw the finding beside its control."""

    @abstractmethod
    def to_frame(self) -> "pd.DataFrame":
        """Return the numbers as a tidy table, with one row for each point of the figure."""

    @abstractmethod
    def summary(self) -> str:
        """Return the finding in one line."""

    def to_plain(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible data.

        Tensors become nested lists with the names of their axes.
        """
        hints = typing.get_type_hints(type(self), include_extras=True)
        fields = dataclasses.fields(typing.cast(Any, self))
        return {f.name: _plain(getattr(self, f.name), hints[f.name]) for f in fields}


def _plain(value: Any, hint: Any) -> Any:
    if isinstance(value, torch.Tensor):
        kinds = [hint, *typing.get_args(hint)]  # an optional tensor's hint is a union
        axes = next((kind.dim_str for kind in kinds if hasattr(kind, "dim_str")), "")
        return {"axes": str(axes).split(), "values": _listed(value)}
    if isinstance(value, tuple):
        return [_plain(item, None) for item in value]
    if isinstance(value, dict):
        (_, inner) = typing.get_args(hint) or (None, None)
        return {str(key): _plain(item, inner) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _listed(tensor: torch.Tensor) -> Any:
    """Return nested lists; NaN and infinities, which JSON lacks, become null."""
    array = tensor.detach().cpu().double().numpy()
    if tensor.dtype in (torch.int64, torch.bool):
        return tensor.tolist()
    return np.where(np.isfinite(array), array, np.array(None, dtype=object)).tolist()
