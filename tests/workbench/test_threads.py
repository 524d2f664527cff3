"""One model is used by one thread at a time; another is told to take a twin."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

TOKENS = torch.tensor([[1, 2, 3, 4]])
ATTN = "blocks.0.hook_attn_out"


def in_another_thread(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize("family", ["looped", "coconut"])
def test_a_second_thread_is_refused_while_the_first_has_hooks(build, family):
    model = build(family)
    calls = [
        lambda: model(TOKENS),
        lambda: model.run_with_cache(TOKENS),
        lambda: model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, lambda t, hook: None)]),
        lambda: model.generate(TOKENS, 1),
        lambda: model.add_hook(ATTN, lambda t, hook: None),
        lambda: model.reset_hooks(),
    ]
    with model.hooks([(ATTN, lambda t, hook: None)], must_fire=False):
        for call in calls:
            with pytest.raises(RuntimeError, match=r"another thread .* model.twin\(\)"):
                in_another_thread(call)
        assert in_another_thread(lambda: model.twin()(TOKENS)).shape[0] == 1
    assert in_another_thread(lambda: model(TOKENS)).shape[0] == 1
    assert not any(point._forward_hooks for point in model.hook_points())


def test_a_second_thread_is_refused_while_the_first_runs(build):
    model = build("looped")
    inside, go = Event(), Event()

    def wait(tensor, hook):
        inside.set()
        go.wait(5)

    model.add_hook("hook_embed", wait)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(model, TOKENS)
        inside.wait(5)
        with pytest.raises(RuntimeError, match="another thread"):
            model(TOKENS)
        go.set()
        running.result()
    model.reset_hooks()
    assert model(TOKENS).shape[0] == 1


def test_a_model_is_free_again_after_an_error(build):
    model = build("looped")

    def fail(tensor, hook):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), model.hooks([(ATTN, fail)]):
        model(TOKENS)
    assert in_another_thread(lambda: model(TOKENS)).shape[0] == 1


def test_a_backward_pass_may_run_in_a_thread_of_its_own(build):
    model = build("looped")
    logits = model(TOKENS)
    in_another_thread(lambda: logits.sum().backward())
    assert model.embed.W_E.grad is not None
