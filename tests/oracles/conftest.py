"""Torch's own forward hooks, on modules that are no hook points, which count their calls.

They know nothing of loops, clocks or places: the n-th call of a block is its n-th loop because the
block is called once a loop, and that is all that is used here.
"""

from contextlib import ExitStack, contextmanager

import pytest
import torch


class Calls:
    """What a module was given and what it made, call by call; `change` may exchange either."""

    def __init__(self, given=None, made=None):
        self.given_by, self.made_by = given, made
        self.given, self.made = [], []

    def before(self, module, args):
        first = args[0]
        if self.given_by is not None and torch.is_tensor(first):
            changed = self.given_by(len(self.given), first)
            first = first if changed is None else changed
        self.given.append(first)
        return (first, *args[1:])

    def after(self, module, args, output):
        if self.made_by is not None:
            changed = self.made_by(len(self.made), output)
            output = output if changed is None else changed
        self.made.append(output)
        return output


@contextmanager
def _counted(**modules):
    """Hook modules: `name=module` or `name=(module, given, made)`; gives their calls by name."""
    with ExitStack() as stack:
        calls = {}
        for name, module in modules.items():
            module, given, made = module if isinstance(module, tuple) else (module, None, None)
            calls[name] = found = Calls(given, made)
            for handle in (
                module.register_forward_pre_hook(found.before),
                module.register_forward_hook(found.after),
            ):
                stack.callback(handle.remove)
        yield calls


@pytest.fixture
def counted():
    """Hook modules while a test looks."""
    return _counted
