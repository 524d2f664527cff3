"""Hooks that report the first loop or thought whose state is not finite."""

from typing import Any

import torch
from torch import Tensor

from workbench.capabilities import CanRecord
from workbench.hooks import HookPoint
from workbench.models.base import Hooks
from workbench.settings.config import ConfigError

PLACES = {
    "recurrence.hook_state_post": "the state after loop",
    "recurrence.hook_thought": "the state handed on as thought",
}


def finite_hooks(model: CanRecord) -> Hooks:
    """Return hooks that raise an error at the first state that is not finite.

    Open them with `model.hooks(fwd_hooks=finite_hooks(model), must_fire=False)`. If the state of a
    loop or a thought has a NaN or an infinity, they raise a ConfigError with the index of the loop
    or thought, from 0.
    """

    def check(tensor: Tensor, hook: Any) -> None:
        assert isinstance(hook, HookPoint)
        if not bool(tensor.isfinite().all()):
            assert hook.name is not None and hook.clock is not None
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise ConfigError(
                f"{PLACES[hook.name]} {hook.clock.loop} is not finite; the model computes in "
                f"{dtype}, whose largest number is {torch.finfo(tensor.dtype).max:.3g}"
            )

    return [(place, check) for place in PLACES if place in model.hook_dict]
