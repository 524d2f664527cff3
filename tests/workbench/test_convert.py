import pytest
import torch

from workbench.models import build_model
from workbench.pretrained.convert import ConversionError, from_transformer_lens, to_transformer_lens

TOKENS = torch.tensor([[1, 2, 3, 4]])


def as_hooked_transformer(model):
    """A model's weights as HookedTransformer keeps them, with its buffers."""
    mask = torch.ones(8, 8).tril()
    buffers = {"blocks.0.attn.mask": mask, "blocks.0.attn.IGNORE": torch.tensor(-torch.inf)}
    return to_transformer_lens(model) | buffers


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("scale", ["1/sqrt(d_model)", 1.0])
def test_weights_come_back_as_they_went(build, tied, scale):
    model = build("transformer", tie_embeddings=tied, logit_scale=scale)
    copy = build_model(model.cfg).eval()
    copy.load_state_dict(from_transformer_lens(as_hooked_transformer(model), model.cfg))
    own, got = model.state_dict(), copy.state_dict()
    assert all(torch.equal(own[name], got[name]) for name in own)


def test_a_tied_model_is_written_with_the_readouts_scale_and_no_bias(build):
    model = build("transformer")
    weights = to_transformer_lens(model)
    torch.testing.assert_close(weights["unembed.W_U"], model.W_E.T / 4)  # 4 = √d_model
    assert weights["unembed.b_U"].tolist() == [0.0] * 11


def test_a_tied_model_untied_on_the_way_says_the_same(build, cfg):
    tied = build("transformer")
    untied_cfg = cfg("transformer", tie_embeddings=False)
    untied = build_model(untied_cfg).eval()
    untied.load_state_dict(from_transformer_lens(to_transformer_lens(tied), untied_cfg))
    torch.testing.assert_close(untied(TOKENS), tied(TOKENS), atol=1e-5, rtol=1e-4)


def test_one_loop_of_a_looped_model_goes_over(build, cfg):
    looped = build("looped")
    plain = build_model(cfg("transformer")).eval()
    plain.load_state_dict(from_transformer_lens(to_transformer_lens(looped), plain.cfg))
    assert torch.equal(plain(TOKENS), looped(TOKENS, n_loops=1))


def test_an_unembedding_of_its_own_does_not_fit_a_tied_config(build, cfg):
    weights = to_transformer_lens(build("transformer", tie_embeddings=False))
    with pytest.raises(ConversionError, match=r"ties the embeddings.*set tie_embeddings=False"):
        from_transformer_lens(weights, cfg("transformer"))


def test_a_bias_of_the_unembedding_does_not_fit_a_tied_config(build):
    model = build("transformer")
    weights = to_transformer_lens(model)
    weights["unembed.b_U"][3] = 1.0
    with pytest.raises(ConversionError, match="b_U is not zero"):
        from_transformer_lens(weights, model.cfg)


def test_converting_takes_nothing_from_the_given_state_dict(build):
    model = build("transformer")
    weights = to_transformer_lens(model)
    names = set(weights)
    from_transformer_lens(weights, model.cfg)
    assert set(weights) == names


@pytest.mark.parametrize(
    ("family", "changes", "foreign"),
    [
        ("discoloop", {"alpha": "learned"}, "recurrence.gate.w"),
        ("looped", {"n_prelude": 1}, "prelude.0."),
        ("looped", {"n_coda": 1}, "coda.0."),
        ("looped", {"positional_embedding_type": "relative"}, "blocks.0.attn.rel_pos_bias.b"),
        ("looped", {"state_norm": "rms"}, "the norm on what a loop starts from"),
    ],
)
def test_what_a_hooked_transformer_lacks_is_named(build, family, changes, foreign):
    with pytest.raises(ConversionError, match="a HookedTransformer has no place for ") as error:
        to_transformer_lens(build(family, **changes))
    assert foreign in str(error.value)
