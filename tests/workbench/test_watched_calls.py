"""Other tools that watch torch modules being called see the hook points as well."""

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

TOKENS = torch.tensor([[1, 2, 3, 4]])


def test_a_global_hook_of_torch_sees_every_firing(build):
    model = build("looped")
    seen = []
    handle = register_module_forward_hook(lambda module, inputs, out: seen.append(module))
    try:
        watched = model(TOKENS, n_loops=3)
    finally:
        handle.remove()
    points = [getattr(module, "name", None) for module in seen]
    assert points.count("blocks.0.hook_attn_out") == 3
    assert points.count("hook_embed") == 1
    assert torch.equal(watched, model(TOKENS, n_loops=3))


def test_a_wrapped_call_sees_every_firing(build, monkeypatch):
    model = build("looped")
    plain = nn.Module.__call__
    seen = []

    def call(self, *args, **kwargs):
        seen.append(getattr(self, "name", None))
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", call)
    model(TOKENS, n_loops=2)
    assert seen.count("recurrence.hook_state_post") == 2


def test_a_forward_put_on_a_hook_point_acts(build):
    model = build("looped")
    point = model.blocks[0].hook_attn_out
    point.forward = lambda tensor: tensor * 0
    changed = model(TOKENS)
    del point.forward
    zeroed = model.run_with_hooks(
        TOKENS, fwd_hooks=[("blocks.0.hook_attn_out", lambda tensor, hook: tensor * 0)]
    )
    assert torch.equal(changed, zeroed)
