"""Backward hooks restricted to a loop see and change the gradient of that loop alone."""

import pytest
import torch

from workbench.hooks import at_loop

TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
ATTN = "blocks.0.hook_attn_out"


def gradient(model, *bwd_hooks):
    """The gradient of W_E under backward hooks."""
    model.zero_grad()
    with model.hooks(bwd_hooks=list(bwd_hooks)):
        model(TOKENS, n_loops=3).square().sum().backward()
    return model.embed.W_E.grad.clone()


def test_it_is_given_the_gradient_of_its_own_loop(build):
    model = build("looped")
    seen = {}

    def keep(loop):
        def hook_fn(grad, hook):
            seen[loop] = (grad.clone(), hook.clock.loop)

        return hook_fn

    gradient(model, *[(ATTN, at_loop(keep(loop), loop)) for loop in range(3)])
    # The same by hand: a value added in that loop alone has the gradient of the place
    for loop in range(3):
        extra = torch.zeros(2, 4, 16, requires_grad=True)
        with model.hooks([(ATTN, at_loop(lambda t, hook, extra=extra: t + extra, loop))]):
            model(TOKENS, n_loops=3).square().sum().backward()
        torch.testing.assert_close(seen[loop][0], extra.grad)
        assert seen[loop][1] == loop


def test_what_it_returns_replaces_the_gradient(build):
    model = build("looped")
    plain = gradient(model)
    cut = gradient(model, (ATTN, at_loop(lambda grad, hook: grad * 0, 1)))
    with model.hooks([(ATTN, at_loop(lambda t, hook: t.detach(), 1))]):
        model.zero_grad()
        model(TOKENS, n_loops=3).square().sum().backward()
    torch.testing.assert_close(cut, model.embed.W_E.grad)
    assert not torch.allclose(cut, plain)


def test_a_loop_that_does_not_come_is_an_error(build):
    with pytest.raises(RuntimeError, match="asked for loop 7 and never fired there"):
        gradient(build("looped"), (ATTN, at_loop(lambda grad, hook: None, [0, 7])))


def test_without_a_restriction_it_sees_every_loop(build):
    seen = []
    gradient(build("looped"), (ATTN, lambda grad, hook: seen.append(grad.shape)))
    assert len(seen) == 3
