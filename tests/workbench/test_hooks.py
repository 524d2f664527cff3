import gc

import pytest
import torch

from workbench.hooks import AtLoop, AtPosition, LoopClock, at_loop, at_position
from workbench.hooks.cache import UnknownHook

TOKENS = torch.tensor([[1, 2, 3, 4]])
ATTN, POST = "blocks.0.hook_attn_out", "recurrence.hook_state_post"


def zero(tensor, hook):
    return torch.zeros_like(tensor)


def plus_one(tensor, hook):
    return tensor + 1


def n_hooks(model):
    return sum(
        len(point._forward_hooks) + len(point._backward_hooks) for point in model.hook_points()
    )


@pytest.fixture
def model(build):
    return build("looped", n_loops=3)


def test_the_clock_holds_each_loop_and_then_none():
    clock = LoopClock()
    assert [clock.loop for _ in clock.ticks(3)] == [0, 1, 2]
    assert clock.loop is None


def test_the_clock_stops_when_a_loop_raises():
    clock = LoopClock()
    ticks = clock.ticks(3)

    def run():
        for _ in ticks:
            try:
                raise KeyError
            finally:
                ticks.close()

    with pytest.raises(KeyError):
        run()
    assert clock.loop is None


def test_the_clock_stops_when_a_hook_raises(model):
    def fail(tensor, hook):
        raise KeyError("wrong index")

    with pytest.raises(KeyError):
        model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, at_loop(fail, 1))])
    gc.collect()
    assert model.clock.loop is None


def test_at_loop_touches_that_loop_alone(model):
    with model.hooks([(ATTN, at_loop(zero, loops=1))]):
        _, cache = model.run_with_cache(TOKENS)
    is_zero = (cache[ATTN] == 0).flatten(1).all(1)
    assert is_zero.tolist() == [False, True, False]


def test_at_loop_takes_several_loops(model):
    with model.hooks([(ATTN, at_loop(zero, loops=[0, 2]))]):
        _, cache = model.run_with_cache(TOKENS)
    is_zero = (cache[ATTN] == 0).flatten(1).all(1)
    assert is_zero.tolist() == [True, False, True]


def test_at_loop_says_what_it_is():
    assert isinstance(at_loop(zero, 2), AtLoop)
    assert repr(at_loop(zero, [2, 0])).endswith(", [0, 2])")


def test_at_position_touches_that_position_alone(model):
    _, clean = model.run_with_cache(TOKENS, n_loops=1)
    with model.hooks([(ATTN, at_position(zero, positions=[1, 3]))]):
        _, cache = model.run_with_cache(TOKENS, n_loops=1)
    assert not cache[ATTN][0, 0, [1, 3]].any()
    assert torch.equal(cache[ATTN][0, 0, [0, 2]], clean[ATTN][0, 0, [0, 2]])


def test_at_position_gives_the_rows_of_that_position(model):
    shapes = []

    def see(tensor, hook):
        shapes.append(tensor.shape)

    hooks = [(ATTN, at_position(see, 2)), ("blocks.0.attn.hook_pattern", at_position(see, 2))]
    model.run_with_hooks(TOKENS.expand(3, -1), n_loops=1, fwd_hooks=hooks)
    assert shapes == [(3, 2, 1, 4), (3, 1, 16)]


def test_a_position_of_a_pattern_is_its_query(model):
    place = "blocks.0.attn.hook_pattern"
    with model.hooks([(place, at_position(zero, 2))]):
        _, cache = model.run_with_cache(TOKENS, n_loops=1)
    assert not cache[place][0, :, :, 2].any() and cache[place][0, :, :, 3].all()


def test_at_position_says_what_it_is(model):
    hook = at_position(zero, 2)
    assert isinstance(hook, AtPosition) and repr(hook).endswith(", [2])")
    with model.hooks([(ATTN, at_loop(hook, 1))]):
        assert not model.hook_dict[ATTN].wants_whole
        _, cache = model.run_with_cache(TOKENS)
    assert (cache[ATTN][:, 0, 2] == 0).all(-1).tolist() == [False, True, False]


def test_an_edit_of_the_last_loop_reaches_the_logits(model):
    edited = model.run_with_hooks(TOKENS, fwd_hooks=[(POST, at_loop(zero, 2))])
    torch.testing.assert_close(edited, model.readout(torch.zeros(1, 4, 16)))


def test_a_filter_hooks_every_place_it_matches(model):
    names = []
    hook = (lambda name: name.endswith("hook_attn_out"), lambda t, hook: names.append(hook.name))
    model.run_with_hooks(TOKENS, n_loops=1, fwd_hooks=[hook])
    assert names == ["blocks.0.hook_attn_out", "blocks.1.hook_attn_out"]


def test_an_unknown_name_is_answered_with_the_nearest(model):
    with pytest.raises(
        UnknownHook,
        match=r"no hook 'blocks\.0\.hook_atn_out'; did you mean "
        r"'blocks\.0\.hook_attn_out'",
    ):
        model.run_with_hooks(TOKENS, fwd_hooks=[("blocks.0.hook_atn_out", zero)])


def test_an_unknown_name_among_backward_hooks_is_refused(model):
    with (
        pytest.raises(UnknownHook, match="no hook 'nowhere'"),
        model.hooks([], [("nowhere", zero)]),
    ):
        pass


def test_a_filter_that_matches_nothing_is_refused(model):
    with pytest.raises(UnknownHook, match="filter of names matches no hook"):
        model.run_with_hooks(TOKENS, fwd_hooks=[(lambda name: False, zero)])


@pytest.mark.parametrize("loops", [3, -1, [], [0, 9]])
def test_a_loop_that_does_not_come_is_an_error(model, loops):
    with pytest.raises(RuntimeError, match="fired there; this pass ran 3 loops, numbered 0 to 2"):
        model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, at_loop(zero, loops))])


def test_at_loop_outside_the_loops_is_an_error(model):
    with pytest.raises(RuntimeError, match="hook_embed asked for loop 0 and never fired"):
        model.run_with_hooks(TOKENS, fwd_hooks=[("hook_embed", at_loop(zero, 0))])


def test_a_place_between_loops_never_fires_in_a_single_loop(build):
    hook = ("recurrence.hook_decoded", zero)
    with pytest.raises(RuntimeError, match="never fired in 1 loops"):
        build("discoloop").run_with_hooks(TOKENS, n_loops=1, fwd_hooks=[hook])


def test_hooks_that_were_opened_for_no_forward_pass_are_no_error(model):
    with model.hooks([(ATTN, zero)]):
        pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_raising_hook_leaves_no_hook_behind(model, error):
    clean = model(TOKENS)

    def fail(tensor, hook):
        raise error

    with pytest.raises(error):
        model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, plus_one), (POST, at_loop(fail, 1))])
    assert n_hooks(model) == 0
    assert torch.equal(model(TOKENS), clean)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_forward_that_is_stopped_while_caching_leaves_no_hook_behind(model, error):
    def fail(tensor, hook):
        raise error

    with pytest.raises(error), model.hooks([(POST, at_loop(fail, 2))]):
        model.run_with_cache(TOKENS)
    assert n_hooks(model) == 0


def test_a_refused_hook_leaves_no_hook_behind(model):
    with pytest.raises(UnknownHook):
        model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, plus_one), ("nowhere", zero)])
    with pytest.raises(RuntimeError):
        model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, at_loop(zero, 9))])
    assert n_hooks(model) == 0


def test_nested_contexts_remove_only_their_own(model):
    clean = model(TOKENS)
    with model.hooks([(ATTN, plus_one)]):
        outer = model(TOKENS)
        with model.hooks([(POST, zero)]):
            inner = model(TOKENS)
        assert torch.equal(model(TOKENS), outer)
    assert torch.equal(model(TOKENS), clean)
    assert not torch.equal(outer, inner) and not torch.equal(outer, clean)


def test_a_cache_inside_a_context_leaves_the_contexts_hooks_alone(model):
    with model.hooks([(ATTN, plus_one)]):
        edited = model(TOKENS)
        model.run_with_cache(TOKENS, names_filter=POST)
        assert torch.equal(model(TOKENS), edited)


def test_a_lasting_hook_survives_contexts_and_caches(model):
    model.add_hook(ATTN, plus_one)
    edited = model(TOKENS)
    model.run_with_cache(TOKENS)
    model.run_with_hooks(TOKENS, fwd_hooks=[(ATTN, zero)])
    with pytest.raises(UnknownHook):
        model.run_with_hooks(TOKENS, fwd_hooks=[("nowhere", zero)])
    assert torch.equal(model(TOKENS), edited)
    assert n_hooks(model) == 1


def test_hooks_of_an_outer_context_act_before_the_cache_looks(model):
    with model.hooks([(ATTN, zero)]):
        _, cache = model.run_with_cache(TOKENS, names_filter=ATTN)
    assert not cache[ATTN].any()


def test_backward_hooks_that_would_be_gone_in_time_are_refused(model):
    with pytest.raises(ValueError, match="removed before a backward pass can run"):
        model.run_with_hooks(TOKENS, bwd_hooks=[(ATTN, zero)])


def test_backward_hooks_see_the_gradient_of_every_loop(model):
    seen = []
    with model.hooks(bwd_hooks=[(POST, lambda gradient, hook: seen.append(gradient.shape))]):
        model(TOKENS).sum().backward()
    assert seen == [(1, 4, 16)] * 3


def test_hooks_of_one_place_act_in_turn_and_each_sees_what_the_last_left(model):
    point, seen = model.hook_dict[ATTN], []
    point.add_hook(plus_one)
    point.add_hook(lambda tensor, hook: seen.append(tensor))
    point.add_hook(plus_one)
    out = point(torch.zeros(2))
    assert seen[0].tolist() == [1, 1] and out.tolist() == [2, 2]


def test_hooks_of_torch_itself_are_called_as_torch_calls_them(model):
    point = model.hook_dict[ATTN]
    point.register_forward_hook(lambda module, given, out: out + len(given))
    assert point(torch.zeros(1)).tolist() == [1]
    point.register_forward_hook(lambda module, given, named, out: out + 10, with_kwargs=True)
    assert point(torch.zeros(1)).tolist() == [11]
    point.register_forward_pre_hook(lambda module, given: (given[0] + 100,))
    assert point(torch.zeros(1)).tolist() == [111]


def test_a_hook_that_removes_itself_leaves_the_next_in_place(model):
    point = model.hook_dict[ATTN]
    handle = point.register_forward_hook(lambda module, given, out: handle.remove())
    point.add_hook(plus_one)
    assert point(torch.zeros(1)).tolist() == [1]
    assert point(torch.zeros(1)).tolist() == [1] and n_hooks(model) == 1
