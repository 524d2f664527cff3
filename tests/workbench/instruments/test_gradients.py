import torch

from workbench.instruments import GradientByLoop

TOKENS = torch.tensor([[1, 2, 3, 4]])
POST = "recurrence.hook_state_post"


def test_the_last_loops_gradient_is_that_of_the_readout(build):
    model, gradient = build("looped", n_loops=3), GradientByLoop()
    with gradient.watch(model):
        model(TOKENS).log_softmax(-1)[..., 1].sum().backward()
    _, cache = model.run_with_cache(TOKENS, names_filter=POST)
    state = cache[POST][-1].requires_grad_()
    model.readout(state).log_softmax(-1)[..., 1].sum().backward()
    torch.testing.assert_close(gradient.norms[-1], float(state.grad.norm()), rtol=1e-4, atol=1e-5)


def test_a_loop_that_is_erased_gets_no_gradient(build):
    model, gradient = build("looped", n_loops=3), GradientByLoop()

    def erase_second(tensor, hook):
        return torch.zeros_like(tensor) if model.clock.loop == 1 else None

    with gradient.watch(model), model.hooks([("blocks.0.hook_resid_pre", erase_second)]):
        model(TOKENS).sum().backward()
    assert [norm > 0 for norm in gradient.norms] == [False, True, True]


def test_hard_decoding_alone_cuts_the_gradient_off(build):
    model = build("ponder", n_loops=2, decoding="hard", keep_input=False)
    gradient = GradientByLoop()
    with gradient.watch(model):
        model(TOKENS).sum().backward()
    assert [norm > 0 for norm in gradient.norms] == [False, True]


def test_squares_add_up_over_forwards(build):
    model = build("looped", n_loops=2)
    one, two = GradientByLoop(), GradientByLoop()
    for gradient, n in ((one, 1), (two, 2)):
        with gradient.watch(model):
            sum(model(TOKENS).sum() for _ in range(n)).backward()
    assert torch.allclose(torch.tensor(two.norms), 2**0.5 * torch.tensor(one.norms))


def test_watching_leaves_gradients_and_hooks_as_they_were(build):
    model = build("looped", n_loops=2)
    model(TOKENS).sum().backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    with GradientByLoop().watch(model):
        model(TOKENS).sum().backward()
    assert all(torch.equal(p.grad, plain[name]) for name, p in model.named_parameters())
    assert not any(point._forward_hooks for point in model.hook_points())


def test_a_forward_without_gradient_notes_nothing(build):
    model, gradient = build("looped"), GradientByLoop()
    with torch.no_grad(), gradient.watch(model):
        model(TOKENS)
    assert gradient.norms == []
