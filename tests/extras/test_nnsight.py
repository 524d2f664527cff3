"""nnsight sees the hook points of a model, each call of each."""

import nnsight
import torch

from workbench.models import build_model, model_config

TOKENS = torch.tensor([[1, 2, 3, 4]])
SHAPE = dict(d_vocab=11, n_ctx=8, d_model=16, n_heads=2, n_layers=1, d_mlp=32)


def make_model():
    return build_model(model_config(dict(family="looped", n_loops=3) | SHAPE)).eval()


def test_nnsight_reads_each_loop_of_a_hook_point():
    model = make_model()
    _, cache = model.run_with_cache(TOKENS)
    net = nnsight.NNsight(model)
    with net.trace(TOKENS) as tracer:
        seen = [].save()
        for _ in tracer.iter[0:3]:
            seen.append(net.blocks[0].hook_attn_out.output)
    assert len(seen) == 3
    for loop, value in enumerate(seen):
        torch.testing.assert_close(value, cache["blocks.0.hook_attn_out"][loop])


def test_nnsight_changes_a_hook_point():
    model = make_model()
    zeroed = model.run_with_hooks(
        TOKENS, fwd_hooks=[("hook_embed", lambda tensor, hook: tensor * 0)]
    )
    net = nnsight.NNsight(model)
    with net.trace(TOKENS):
        net.hook_embed.output = net.hook_embed.output * 0
        logits = net.output.save()
    torch.testing.assert_close(logits, zeroed)
