"""The silent faults that users filed against neighbouring tools: the right number, or an error."""

import pytest
import torch

from workbench.hooks import at_loop, at_position
from workbench.hooks.cache import UnknownHook

K = 3
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
RESID, FIRST = "blocks.1.hook_resid_post", "blocks.0.hook_resid_post"


@pytest.fixture(params=["looped", "discoloop", "depth_recurrent"])
def model(request, build):
    return build(request.param)


@pytest.fixture
def raw(counted, model):
    with counted(block=model.blocks[1]) as calls:
        model(TOKENS, n_loops=K)
    return calls["block"].made


def test_the_last_loop_does_not_win(model, raw):
    _, cache = model.run_with_cache(TOKENS, n_loops=K)
    assert len(cache[RESID]) == K
    for r in range(K):
        torch.testing.assert_close(cache[RESID][r], raw[r])
    assert not torch.allclose(cache[RESID][0], cache[RESID][-1])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_a_read_binds_to_the_loop_it_names_in_whatever_order(model, raw, order):
    # nnsight: a read in reverse order binds to the next occurrence instead
    read = {}
    hooks = [
        (RESID, at_loop(lambda t, hook, r=r: read.__setitem__(r, t.clone()), r)) for r in order
    ]
    model.run_with_hooks(TOKENS, n_loops=K, fwd_hooks=hooks)
    for r in range(K):
        torch.testing.assert_close(read[r], raw[r])


def test_places_are_read_in_any_order(model, raw):
    _, cache = model.run_with_cache(TOKENS, n_loops=K, names_filter=[RESID, FIRST, "hook_embed"])
    later, first, embedded = cache[RESID][2], cache[FIRST][0], cache["hook_embed"]
    torch.testing.assert_close(later, raw[2])
    assert first.shape == embedded.shape and not torch.equal(first, later)


@pytest.mark.parametrize(
    ("name", "value"),
    [("stop_at_layer", 1), ("start_at_layer", 1), ("return_type", "loss"), ("past_kv_cache", None)],
)
def test_a_word_of_another_tools_forward_is_refused_and_not_ignored(model, name, value):
    with pytest.raises(TypeError, match=name):
        model(TOKENS, n_loops=K, **{name: value})


@pytest.mark.parametrize(
    "hook",
    [
        (RESID, at_loop(lambda t, hook: None, K)),
        (RESID, at_loop(lambda t, hook: None, [0, 9])),
        (RESID, at_position(lambda t, hook: None, 17)),
    ],
    ids=["a loop that is not run", "one of two loops", "a position that is not there"],
)
def test_a_hook_that_never_fires_is_an_error(model, hook):
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        model.run_with_hooks(TOKENS, n_loops=K, fwd_hooks=[hook])


def test_a_place_that_is_not_there_is_an_error(model):
    with pytest.raises(UnknownHook):
        model.run_with_hooks(TOKENS, fwd_hooks=[("blocks.7.hook_resid_post", lambda t, hook: t)])
    with pytest.raises(UnknownHook):
        model.run_with_cache(TOKENS, names_filter=lambda name: "layer" in name)


def test_a_record_is_not_changed_by_what_comes_after_it(model, raw):
    # a hook that writes in place, after the record was taken
    def overwrite(tensor, hook):
        tensor.zero_()

    seen = []

    def keep(tensor, hook):
        seen.append(tensor.clone())

    model.run_with_hooks(TOKENS, n_loops=1, fwd_hooks=[(RESID, keep), (RESID, overwrite)])
    torch.testing.assert_close(seen[0], raw[0])


def test_a_stopped_pass_leaves_no_hook_and_no_loop(model, raw):
    def stop(tensor, hook):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.run_with_hooks(TOKENS, n_loops=K, fwd_hooks=[(RESID, at_loop(stop, 1))])
    assert model.clock.loop is None
    _, cache = model.run_with_cache(TOKENS, n_loops=K)
    for r in range(K):
        torch.testing.assert_close(cache[RESID][r], raw[r])
