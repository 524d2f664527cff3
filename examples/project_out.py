"""An edit: take a direction out of the values at a place.

    workbench --plugin examples/project_out.py analyse answers RUN --edits edits.json

with edits.json: [{"do": "project_out", "place": "recurrence.hook_state_in", "direction": [1, …]}]
"""

from typing import Literal

import torch
from torch import Tensor

from workbench import EDITS
from workbench.edits.base import PlaceEdit
from workbench.edits.firing import Firing

EXAMPLE = {"place": "blocks.0.hook_attn_out", "direction": [1.0] * 16, "loops": [1]}


@EDITS.register("project_out", example=EXAMPLE)
class ProjectOut(PlaceEdit):
    """Subtract the part of each vector that points along `direction`."""

    do: Literal["project_out"] = "project_out"
    direction: list[float]

    def change(self, tensor: Tensor, firing: Firing) -> Tensor:
        unit = torch.nn.functional.normalize(tensor.new_tensor(self.direction), dim=0)
        return tensor - (tensor @ unit)[..., None] * unit
