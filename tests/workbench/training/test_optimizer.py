import pytest

from workbench.settings.recipe import OptimizerConfig
from workbench.training.optimizer import learning_rate, make_optimizer


def groups(model, **changes):
    """Names of the decayed parameters, and of those that are not."""
    optimizer = make_optimizer(model, OptimizerConfig(**changes))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, kept = (
        {
            names[id(p)]
            for group in optimizer.param_groups
            if bool(group["weight_decay"]) is decay
            for p in group["params"]
        }
        for decay in (True, False)
    )
    return decayed, kept


@pytest.fixture
def model(build):
    return build("discoloop", alpha="learned", tie_embeddings=False)


def test_maps_are_decayed_and_biases_gains_and_embeddings_are_not(model):
    decayed, kept = groups(model)
    assert {name.rpartition(".")[2] for name in decayed} == {
        "W_Q", "W_K", "W_V", "W_O", "W_in", "W_out"
    }  # fmt: skip
    assert {"embed.W_E", "unembed.W_U", "ln_final.w", "recurrence.gate.w"} <= kept


def test_embeddings_are_decayed_on_request(model):
    decayed, _ = groups(model, decay_embeddings=True)
    assert {"embed.W_E", "unembed.W_U"} <= decayed


@pytest.mark.parametrize("decay_embeddings", [False, True])
def test_every_parameter_is_fitted_once(model, decay_embeddings):
    decayed, kept = groups(model, decay_embeddings=decay_embeddings)
    assert decayed | kept == {name for name, _ in model.named_parameters()}
    assert not decayed & kept


def test_the_rate_rises_in_a_line_and_stays():
    cfg = OptimizerConfig(lr=1.0, warmup=4)
    assert [learning_rate(cfg, step, 10) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_the_rate_may_fall_along_a_cosine():
    cfg = OptimizerConfig(lr=1.0, warmup=2, schedule="cosine")
    rates = [learning_rate(cfg, step, 6) for step in range(2, 6)]
    assert rates == pytest.approx([1.0, 0.85355, 0.5, 0.14645], abs=1e-4)


def test_without_a_warmup_the_rate_is_there_at_once():
    assert learning_rate(OptimizerConfig(lr=0.5, warmup=0), 0, 10) == 0.5


def test_maps_of_grouped_keys_are_decayed_as_others(build):
    decayed, _ = groups(build("looped", n_heads=4, n_key_value_heads=2, gated_mlp=True))
    assert {"blocks.0.attn._W_K", "blocks.0.attn._W_V", "blocks.0.mlp.W_gate"} <= decayed
