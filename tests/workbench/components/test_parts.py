"""Embedding, perceptron and readout against sums written out."""

import pytest
import torch
import torch.nn.functional as F

from workbench.components.mlp import ACTIVATIONS, MLP, mlp

TOKENS = torch.tensor([[1, 2, 3, 4]])


@pytest.mark.parametrize("act_fn", ACTIVATIONS)
def test_the_perceptron_is_two_maps_around_an_activation(cfg, act_fn):
    made, x = mlp(cfg(act_fn=act_fn)), torch.randn(2, 3, 16)
    assert isinstance(made, MLP)
    made.b_in.data.normal_()
    made.b_out.data.normal_()
    wanted = ACTIVATIONS[act_fn](x @ made.W_in + made.b_in) @ made.W_out + made.b_out
    torch.testing.assert_close(made(x), wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("act_fn", ACTIVATIONS)
def test_a_gated_perceptron_multiplies_two_maps(cfg, act_fn):
    made, x = mlp(cfg(act_fn=act_fn, gated_mlp=True)), torch.randn(2, 3, 16)
    made.b_in.data.normal_()
    made.b_out.data.normal_()
    inside = ACTIVATIONS[act_fn](x @ made.W_gate) * (x @ made.W_in) + made.b_in
    torch.testing.assert_close(made(x), inside @ made.W_out + made.b_out, atol=1e-5, rtol=1e-4)


def test_gelu_is_exact_and_gelu_new_its_approximation():
    x = torch.linspace(-3, 3, 7)
    exact = x * 0.5 * (1 + torch.erf(x / 2**0.5))
    near = x * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    torch.testing.assert_close(ACTIVATIONS["gelu"](x), exact)
    torch.testing.assert_close(ACTIVATIONS["gelu_new"](x), near)


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_the_final_norm_times_the_unembedding(build, tied):
    model = build(tie_embeddings=tied)
    logits, cache = model.run_with_cache(TOKENS)
    normed = cache["ln_final.hook_normalized"] * model.ln_final.w
    torch.testing.assert_close(logits, normed @ model.W_U + model.b_U, atol=1e-5, rtol=1e-4)


def test_a_tied_model_holds_its_embedding_once(build):
    model = build(tie_embeddings=True, logit_scale=2.0)
    names = [name for name, _ in model.named_parameters()]
    assert "embed.W_E" in names and not any("unembed" in name for name in names)
    assert torch.equal(model.W_U, model.W_E.T * 2)
    assert not model.b_U.any()


def test_learned_positions_are_added_to_the_words(build):
    model = build(positional_embedding_type="standard")
    _, cache = model.run_with_cache(TOKENS)
    assert torch.equal(cache["hook_embed"], model.W_E[TOKENS])
    assert torch.equal(cache["hook_pos_embed"], model.W_pos[:4][None])
    both = model.W_E[TOKENS] + model.W_pos[:4]
    torch.testing.assert_close(cache["resid_pre", 0][0], both)


def test_weights_of_all_layers_come_stacked(build):
    model = build(n_layers=3)
    for name, shape in {
        "W_Q": (3, 2, 16, 8),
        "W_K": (3, 2, 16, 8),
        "W_V": (3, 2, 16, 8),
        "W_O": (3, 2, 8, 16),
        "W_in": (3, 16, 32),
        "W_out": (3, 32, 16),
    }.items():
        assert getattr(model, name).shape == shape


def test_a_block_whose_output_starts_at_zero_is_the_identity(cfg):
    from workbench.models import build_model

    model = build_model(cfg(output_init=0.0))
    _, cache = model.run_with_cache(TOKENS, n_loops=3)
    assert torch.equal(cache["recurrence.hook_state_post"][-1], cache["hook_embed"])


def test_fresh_weights_have_the_spread_the_config_says(cfg):
    from workbench.models import build_model

    model = build_model(cfg(d_vocab=500, d_model=64, d_mlp=256, embed_std=2.0, output_init=0.5))
    spread = {
        "embed.W_E": 2.0,
        "blocks.0.attn.W_Q": 1 / 8,
        "blocks.0.attn.W_O": 0.5 / 8,
        "blocks.0.mlp.W_in": 1 / 8,
        "blocks.0.mlp.W_out": 0.5 / 16,
    }
    for name, parameter in model.named_parameters():
        if name in spread:
            assert float(parameter.detach().std()) == pytest.approx(spread[name], rel=0.05), name
        elif ".b_" in name:
            assert not parameter.any(), name


def test_a_block_adds_its_parts_to_the_stream(build):
    _, cache = build().run_with_cache(TOKENS)
    mid = cache["resid_pre", 1] + cache["attn_out", 1]
    torch.testing.assert_close(cache["resid_mid", 1], mid)
    torch.testing.assert_close(cache["resid_post", 1], mid + cache["mlp_out", 1])


def test_the_embedding_takes_its_gradient_from_both_ends(build):
    model = build()
    F.cross_entropy(model(TOKENS)[:, -1], torch.tensor([5])).backward()
    used = model.W_E.grad.abs().sum(1) > 0
    assert used.all()  # the words by the input, all others by the readout
