"""A tidy table from tensors with named axes: one row for each point of a figure."""

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
        values: Tensors by column name, all with the same axes.
        axes: The labels of each axis, in order, by column name.
        **constants: Columns that hold one value.

    Raises:
        ValueError: The shape of a tensor is not that of the labels.
    """
    import pandas as pd

    shape = [len(labels) for labels in axes.values()]
    for name, tensor in values.items():
        if list(tensor.shape) != shape:
            raise ValueError(f"{name} of shape {list(tensor.shape)} does not fit {shape} labels")
    frame = pd.DataFrame(list(product(*axes.values())), columns=list(axes))
    columns = {name: tensor.flatten().tolist() for name, tensor in values.items()}
    return frame.assign(**columns, **constants)
