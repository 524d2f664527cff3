"""Names that TransformerLens's tools ask of a model and its caches."""

import pytest
import torch

from workbench.pretrained.convert import ConversionError, from_transformer_lens, to_transformer_lens

TOKENS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])


def test_a_place_that_is_named_twice_is_recorded_once(build):
    model = build("looped")
    _, once = model.run_with_cache(TOKENS, names_filter="hook_embed")
    _, twice = model.run_with_cache(TOKENS, names_filter=["hook_embed", "hook_embed"])
    assert torch.equal(once["hook_embed"], twice["hook_embed"]) and len(twice) == 1


@pytest.mark.parametrize("loop", [0, 1])
def test_a_full_decomposition_adds_up_to_the_state(build, loop):
    model = build("looped")
    _, cache = model.run_with_cache(TOKENS)
    parts, labels = cache.loop(loop).get_full_resid_decomposition(
        expand_neurons=False, return_labels=True
    )
    added = parts.sum(0) - cache["hook_embed"] + cache["recurrence.hook_state_pre"][loop]
    wanted = cache["resid_post", -1][loop]
    torch.testing.assert_close(added, wanted, atol=1e-4, rtol=0)
    assert "bias" in labels


def test_circuits_are_products_of_the_weights(build):
    model = build("looped", n_heads=4, n_key_value_heads=2)
    torch.testing.assert_close(model.OV.AB, model.W_V @ model.W_O)
    torch.testing.assert_close(model.QK.AB, model.W_Q @ model.W_K.transpose(-2, -1))


@pytest.mark.parametrize("mode", ["Q", "K", "V"])
def test_composition_scores_are_those_of_the_whole_matrices(build, mode):
    model = build("looped")
    found = model.all_composition_scores(mode)
    qk, ov = model.QK.AB, model.OV.AB
    right = {"Q": qk, "K": qk.transpose(-2, -1), "V": ov}[mode]
    for head, later in ((0, 1), (1, 0)):
        a, b = ov[0, head], right[1, later]
        wanted = (a @ b).norm() / (a.norm() * b.norm())
        torch.testing.assert_close(found[0, head, 1, later], wanted)
    assert not found[1].any() and not found[0, :, 0].any()


def test_accumulated_biases_are_added_by_hand(build):
    model = build("looped")
    first, second = model.blocks
    wanted = first.attn.b_O + first.mlp.b_out + second.attn.b_O
    torch.testing.assert_close(model.accumulated_bias(1, mlp_input=True), wanted)
    torch.testing.assert_close(
        model.accumulated_bias(2, include_mlp_biases=False), first.attn.b_O + second.attn.b_O
    )
    with pytest.raises(ValueError, match="layer=3 is none of the 2 layers"):
        model.accumulated_bias(3)


@pytest.mark.parametrize("family", ["looped", "discoloop", "ponder"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_unembedding_is_heard_once_at_the_end(build, family, tied):
    model = build(family, tie_embeddings=tied)
    logits, cache = model.run_with_cache(TOKENS)
    assert torch.equal(cache["unembed.hook_out"], logits)
    torch.testing.assert_close(cache["unembed.hook_in"] @ model.W_U + model.b_U, logits)
    doubled = model.run_with_hooks(
        TOKENS, fwd_hooks=[("unembed.hook_out", lambda tensor, hook: tensor * 2)]
    )
    torch.testing.assert_close(doubled, logits * 2)


@pytest.mark.parametrize("family", ["coconut", "agclr"])
def test_so_it_is_in_a_model_that_thinks(thinker, family):
    model = thinker(family)
    tokens = torch.tensor([[1, 2, 10, 10, 3, 4]])
    logits, cache = model.run_with_cache(tokens)
    assert torch.equal(cache["unembed.hook_out"], logits)


@pytest.mark.parametrize("token", [-1, 11, 1_000])
def test_a_token_out_of_range_is_named_by_models_that_think(thinker, token):
    with pytest.raises(ValueError, match=f"tokens holds {token}; the 11 words are numbered from"):
        thinker("coconut")(torch.tensor([[1, token, 2]]))


def test_weights_of_another_kind_of_norm_are_refused_in_a_sentence(build, cfg):
    rms = to_transformer_lens(build("transformer", normalization_type="RMS"))
    wanted = cfg("transformer", normalization_type="LN")
    with pytest.raises(ConversionError, match=r"lack .*ln1\.b.*final_rms"):
        from_transformer_lens(rms, wanted)
