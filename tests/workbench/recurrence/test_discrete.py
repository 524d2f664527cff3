"""What DiscoLoop and Ponder hand from loop to loop, by hand and against the plain loop."""

import pytest
import torch

TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
PRE, POST = "recurrence.hook_state_pre", "recurrence.hook_state_post"
DECODED, SHARE = "recurrence.hook_decoded", "recurrence.gate.hook_post"


def rms_normalized(x):
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def twin_of(model, build, family, **changes):
    """A model of another family with the same weights, as far as it has them."""
    other = build(family, **changes)
    other.load_state_dict(model.state_dict(), strict=False)
    return other


def test_the_plain_loop_goes_on_where_it_ended(build):
    _, cache = build("looped").run_with_cache(TOKENS, n_loops=3)
    assert torch.equal(cache[PRE][1:], cache[POST][:-1])


@pytest.mark.parametrize("alpha", [0.5, "learned"])
def test_discoloop_adds_its_share_of_the_normalized_decoded_token(build, alpha):
    _, cache = build("discoloop", alpha=alpha).run_with_cache(TOKENS, n_loops=3)
    mixed = cache[POST][:-1] + cache[SHARE] * rms_normalized(cache[DECODED])
    torch.testing.assert_close(cache[PRE][1:], mixed)


def test_discoloop_mixes_nothing_after_the_last_loop(build):
    model = build("discoloop")
    logits, cache = model.run_with_cache(TOKENS, n_loops=2, names_filter=[POST, DECODED])
    assert torch.equal(model.readout(cache[POST][-1]), logits)
    assert cache[DECODED].shape[0] == 1


def test_discoloop_with_alpha_0_is_the_plain_loop_bit_for_bit(build):
    model = build("discoloop", alpha=0.0)
    looped = twin_of(model, build, "looped")
    assert torch.equal(model(TOKENS, n_loops=4), looped(TOKENS, n_loops=4))


def test_a_gate_clamped_to_0_is_the_plain_loop_bit_for_bit(build):
    model = build("discoloop", alpha="learned")
    looped = twin_of(model, build, "looped")
    shut = (SHARE, lambda share, hook: torch.zeros_like(share))
    edited = model.run_with_hooks(TOKENS, n_loops=4, fwd_hooks=[shut])
    assert torch.equal(edited, looped(TOKENS, n_loops=4))


def test_a_fixed_alpha_stands_at_every_position(build):
    _, cache = build("discoloop", alpha=0.7).run_with_cache(TOKENS, n_loops=3)
    assert cache[SHARE].shape == (2, 2, 4, 1)
    assert (cache[SHARE] == 0.7).all()


def test_a_learned_alpha_is_the_sigmoid_of_a_linear_map_of_the_decoded_token(build):
    model = build("discoloop", alpha="learned")
    _, cache = model.run_with_cache(TOKENS, n_loops=3)
    logits = cache[DECODED] @ model.recurrence.gate.w + model.recurrence.gate.b
    torch.testing.assert_close(cache["recurrence.gate.hook_pre"][..., 0], logits)
    torch.testing.assert_close(cache[SHARE], cache["recurrence.gate.hook_pre"].sigmoid())


def test_a_learned_alpha_starts_with_the_sigmoid_of_its_bias(cfg):
    from workbench.models import build_model

    model = build_model(cfg("discoloop", alpha="learned", alpha_bias=-2.0))
    _, cache = model.run_with_cache(TOKENS, n_loops=2)
    torch.testing.assert_close(cache[SHARE], torch.full((1, 2, 4, 1), 0.1192), atol=1e-4, rtol=0)


@pytest.mark.parametrize("d_model", [8, 16])
def test_a_learned_gate_has_one_parameter_more_than_the_width(build, d_model):
    gated, fixed = (build("discoloop", d_model=d_model, alpha=a) for a in ("learned", 1.0))
    count = [sum(p.numel() for p in model.parameters()) for model in (gated, fixed)]
    assert count[0] - count[1] == d_model + 1


def test_the_normalized_decoded_token_has_an_embeddings_expected_norm(build):
    _, cache = build("discoloop", d_model=16).run_with_cache(TOKENS, n_loops=2)
    step = cache[PRE][1] - cache[POST][0]
    torch.testing.assert_close(step.norm(dim=-1), torch.full((2, 4), 4.0), atol=1e-2, rtol=0)


@pytest.mark.parametrize("positions", ["rotary", "standard"])
def test_ponder_starts_again_from_the_input_plus_the_decoded_token(build, positions):
    model = build("ponder", positional_embedding_type=positions)
    _, cache = model.run_with_cache(TOKENS, n_loops=3)
    wanted = cache["hook_embed"] + cache[DECODED]
    if positions == "standard":
        wanted = wanted + cache["hook_pos_embed"]
    torch.testing.assert_close(cache[PRE][1:], wanted)


@pytest.mark.parametrize("positions", ["rotary", "standard"])
def test_ponder_may_hand_on_the_decoded_token_alone(build, positions):
    model = build("ponder", positional_embedding_type=positions, keep_input=False)
    _, cache = model.run_with_cache(TOKENS, n_loops=3)
    wanted = cache[DECODED]
    if positions == "standard":
        wanted = wanted + cache["hook_pos_embed"]
    torch.testing.assert_close(cache[PRE][1:], wanted)


def test_an_edit_of_the_decoded_token_moves_the_next_state(build):
    model = build("ponder", keep_input=False)
    zero = (DECODED, lambda tensor, hook: torch.zeros_like(tensor))
    with model.hooks([zero]):
        _, cache = model.run_with_cache(TOKENS, n_loops=2)
    assert not cache[PRE][1].any()
