import re

import pytest

from workbench.models import FAMILIES, model_config
from workbench.models.loops.discoloop import DiscoLoopConfig
from workbench.settings.config import ConfigError, nearest, parse

SHAPE = dict(d_vocab=11, n_ctx=8, d_model=16, n_heads=2, n_layers=2, d_mlp=32)


def refusal(family="discoloop", **changes):
    """The sentence with which a config is refused."""
    with pytest.raises(ConfigError) as error:
        model_config({"family": family} | SHAPE | changes)
    return str(error.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_comes_back_from_json(cfg, family):
    made = cfg(family)
    assert type(made).model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_comes_back_from_plain_data(cfg, family):
    made = cfg(family)
    assert model_config(made.model_dump()) == made


def test_a_config_is_frozen(cfg):
    with pytest.raises(ValueError, match="frozen"):
        cfg().d_model = 32


def test_an_unknown_field_is_answered_with_the_nearest():
    assert refusal(n_head=2) == "model has no field 'n_head'; did you mean 'n_heads'?"


def test_a_misspelt_field_is_named_rather_than_the_one_it_leaves_out():
    shape = {name: value for name, value in SHAPE.items() if name != "d_model"}
    with pytest.raises(ConfigError, match=r"no field 'd_modle'; did you mean 'd_model'?"):
        model_config({"family": "looped", "d_modle": 16} | shape)


def test_a_field_of_another_family_is_unknown():
    assert refusal("looped", alpha=1.0).startswith("model has no field 'alpha'; ")


def test_a_missing_field_is_named():
    shape = {name: value for name, value in SHAPE.items() if name != "d_mlp"}
    with pytest.raises(ConfigError, match=r"^model lacks the field 'd_mlp'$"):
        model_config({"family": "looped"} | shape)


def test_a_missing_family_is_answered_with_all():
    with pytest.raises(ConfigError, match="model lacks the field 'family'; there is transformer, "):
        model_config(SHAPE)


def test_an_unknown_family_is_answered_with_the_nearest():
    assert refusal("loopd") == "no family 'loopd'; did you mean 'looped'?"


def test_text_is_no_number():
    assert refusal(d_model="16") == "model: d_model='16': Input should be a valid integer"


def test_a_wrong_choice_is_answered_with_the_right_ones():
    assert refusal(act_fn="gello") == (
        "model: act_fn='gello': Input should be 'gelu', 'gelu_new', 'relu' or 'silu'"
    )


def test_a_wrong_choice_among_words_and_numbers_names_the_word():
    assert re.search(r"^model: alpha='lerned': .*number.*'learned'", refusal(alpha="lerned"))


@pytest.mark.parametrize(
    ("d_model", "n_heads", "near"), [(17, 2, 16), (19, 4, 20), (3, 4, 4), (21, 4, 20)]
)
def test_a_width_that_does_not_divide_is_answered_with_the_nearest(d_model, n_heads, near):
    assert refusal(d_model=d_model, n_heads=n_heads) == (
        f"model: d_model={d_model} does not divide into n_heads={n_heads} heads; "
        f"the nearest width that does is {near}"
    )


@pytest.mark.parametrize("name", [*SHAPE, "n_loops"])
def test_a_size_below_one_is_refused(name):
    assert refusal(**{name: 0}) == f"model: {name}=0 must be at least 1"


@pytest.mark.parametrize("name", ["n_prelude", "n_coda"])
def test_a_negative_number_of_layers_is_refused(name):
    assert refusal(**{name: -1}) == f"model: {name}=-1 must be at least 0"


def test_rotary_positions_need_an_even_head():
    assert refusal(d_model=6) == "model: rotary positions need an even d_head; it is 3"


def test_a_temperature_of_zero_is_answered_with_hard_decoding():
    assert refusal(tau=0.0) == "model: tau=0.0 must be above 0; decoding='hard' is its limit"


def test_a_top_k_of_zero_is_refused():
    assert refusal(top_k=0) == "model: top_k=0 must be at least 1"


def test_a_whole_number_is_a_fixed_alpha(cfg):
    assert cfg("discoloop", alpha=1) == cfg("discoloop", alpha=1.0)


def test_the_width_of_a_head_follows_from_the_others(cfg):
    assert cfg(d_model=16, n_heads=4).d_head == 4


def test_the_readouts_scale_is_a_number_or_undoes_the_width(cfg):
    assert cfg(d_model=16).readout_scale == 0.25
    assert cfg(logit_scale=2.0).readout_scale == 2.0


def test_the_place_of_the_data_is_named():
    with pytest.raises(ConfigError, match=r"^recipe x lacks the field 'family'"):
        parse(DiscoLoopConfig, {}, "recipe x")


@pytest.mark.parametrize(
    ("word", "words", "end"),
    [
        (
            "xyz",
            [f"w{n:03}" for n in range(500)],
            "there is " + ", ".join(f"w{n:03}" for n in range(12)) + " … (500 in all)",
        ),
        ("loopd", ["looped", "ponder"], "did you mean 'looped'?"),
        ("xyz", ["looped", "ponder"], "there is looped, ponder"),
        ("xyz", [], "there is none"),
    ],
)
def test_nearest_ends_a_sentence(word, words, end):
    assert nearest(word, words) == end


def test_a_head_may_be_wider_or_narrower_than_its_share(cfg):
    assert cfg(d_model=17, n_heads=2, head_width=6).d_head == 6
    assert refusal(head_width=0) == "model: head_width=0 must be at least 1"


@pytest.mark.parametrize(("n_kv", "near"), [(3, 2), (5, 4), (9, 4)])
def test_heads_that_do_not_divide_into_groups_are_answered_with_the_nearest(n_kv, near):
    assert refusal(n_heads=4, n_key_value_heads=n_kv) == (
        f"model: n_heads=4 do not divide among n_key_value_heads={n_kv}; "
        f"the nearest number that they do is {near}"
    )


def test_a_scaling_of_positions_is_checked_as_the_rest(cfg):
    scaling = {"factor": 8.0, "high_freq_factor": 4.0}
    assert cfg(rotary_scaling=scaling).rotary_scaling.original_ctx_len == 8192
    assert refusal(rotary_scaling=scaling | {"low_freq": 1.0}) == (
        "model has no field 'rotary_scaling.low_freq'; did you mean 'low_freq_factor'?"
    )
    assert refusal(rotary_scaling={}) == "model lacks the field 'rotary_scaling.factor'"
    assert refusal(rotary_scaling=scaling | {"low_freq_factor": 4.0}) == (
        "model: rotary_scaling: low_freq_factor=4.0 must lie between 0 and high_freq_factor=4.0"
    )


def test_a_recipe_from_before_a_field_was_there_has_its_default(cfg):
    old = {"family": "looped"} | SHAPE
    assert not {"gated_mlp", "n_key_value_heads"} & old.keys()
    made = model_config(old)
    assert (made.gated_mlp, made.use_qk_norm, made.n_key_value_heads) == (False, False, None)
