"""Tidy tables from tensors with named axes: one row for each point of a figure."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    import pandas as pd


def tidy(
    values: Mapping[str, Tensor], axes: Mapping[str, Sequence[Any]], **constants: Any
) -> "pd.DataFrame":
    """Make one row for each combination of labels.

    Args:
        values: Tensors by column name, with these axes; an axis of size 1 is broadcast.
        axes: The labels of each axis, in order, by column name.
        **constants: Columns that hold one value.

    Raises:
        ValueError: The shape of a tensor does not match the labels.
    """
    import pandas as pd

    shape = [len(labels) for labels in axes.values()]
    columns = {}
    for name, tensor in values.items():
        try:
            columns[name] = tensor.expand(shape).flatten().tolist()
        except RuntimeError:
            sizes = f"{name} of shape {list(tensor.shape)} does not fit {shape} labels"
            raise ValueError(sizes) from None
    frame = pd.DataFrame(list(product(*axes.values())), columns=list(axes))
    return frame.assign(**columns, **constants)
