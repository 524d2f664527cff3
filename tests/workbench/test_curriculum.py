"""Every method's layouts by stage, as sequences written by hand."""

import math

import numpy as np
import pytest

from workbench.settings.config import ConfigError, parse
from workbench.settings.recipe import CurriculumConfig
from workbench.tasks.worded.curriculum import Curriculum
from workbench.tasks.worded.layout import Encoded, Specials, lay_out

SPECIALS = Specials(start=90, end=91, latent=92, pause=93, stop=99)
WORDS = {90: "[", 91: "]", 92: "T", 93: "P", 99: "."}
# Two tokens a step; the answer is 80
STEPS = [[11, 12], [21, 22], [31, 32]]


def said(layout, steps=STEPS):
    """A row in a layout: given | to be said; question Q, answer A."""
    problem = Encoded([1], steps, [80], 0, [], (80, 81))
    batch = lay_out([problem], [layout], SPECIALS, [0])
    names = {1: "Q", 80: "A"} | WORDS
    words = [names.get(token, str(token)) for token in batch.tokens[0].tolist()]
    prompt = int(batch.prompt)
    return f"{' '.join(words[:prompt])} | {' '.join(words[prompt:])}"


def curriculum(method, longest=6, **changes):
    fields = {"max_latent_stage": 2, "c_thought": 2, "epochs_per_stage": 1} | changes
    return Curriculum(CurriculumConfig(method=method, **fields), longest)


def stages(method, steps=STEPS, **changes):
    made = curriculum(method, **changes)
    return [said(made.layout(k), steps) for k in range(made.last_stage + 1)]


def test_chain_of_thought_says_every_step():
    assert stages("cot") == ["Q | 11 12 21 22 31 32 A ."]


def test_without_steps_the_answer_follows_at_once():
    assert stages("no_cot") == ["Q | A ."]


def test_pause_tokens_stand_there_from_the_start():
    assert stages("pause") == ["Q P P P P | A ."]


def test_thoughts_take_the_place_of_one_step_more_in_every_stage():
    assert stages("coconut") == [
        "Q [ ] | 11 12 21 22 31 32 A .",
        "Q [ T T ] | 21 22 31 32 A .",
        "Q [ T T T T ] | 31 32 A .",
        "Q [ T T T T ] | A .",
    ]


def test_steps_may_go_without_thoughts():
    assert stages("no_thought") == [
        "Q [ ] | 11 12 21 22 31 32 A .",
        "Q [ ] | 21 22 31 32 A .",
        "Q [ ] | 31 32 A .",
        "Q [ ] | A .",
    ]


def test_pauses_may_take_the_place_of_thoughts():
    assert stages("pause_as_thought")[1:] == [
        "Q [ P P ] | 21 22 31 32 A .",
        "Q [ P P P P ] | 31 32 A .",
        "Q [ P P P P ] | A .",
    ]


def test_icot_takes_tokens_from_the_left_until_none_is_left():
    assert stages("icot", tokens_per_epoch=4) == [
        "Q | 11 12 21 22 31 32 A .",
        "Q | 31 32 A .",
        "Q | A .",
    ]
    # 3 a stage cuts within a step
    assert stages("icot", tokens_per_epoch=3)[1] == "Q | 22 31 32 A ."


@pytest.mark.parametrize(("padded", "thoughts"), [(True, "T T T T"), (False, "T T")])
def test_a_row_of_few_steps_is_padded_with_thoughts_or_not(padded, thoughts):
    wanted = ["Q [ ] | 11 12 A .", "Q [ T T ] | A .", f"Q [ {thoughts} ] | A ."]
    assert stages("coconut", STEPS[:1], pad_latent_to_max=padded)[:3] == wanted


def test_a_finished_model_without_padding_is_asked_with_as_many_thoughts_as_steps():
    layout = curriculum("coconut", max_latent_stage=3, pad_latent_to_max=False).final()
    assert said(layout) == "Q [ T T T T T T ] | A ."
    assert said(layout, STEPS[:2]) == "Q [ T T T T ] | A ."
    # A typed question may have steps that nobody knows
    assert said(layout, []) == said(layout)
    # Fewer than trained: still no more than the row's own; more: for every row alike
    assert said(layout.with_fillers(3), STEPS[:1]) == "Q [ T T ] | A ."
    assert said(layout.with_fillers(7), STEPS[:1]) == "Q [ T T T T T T T ] | A ."


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("cot", "Q | 11 12 21 22 31 32 A ."),
        ("no_cot", "Q | A ."),
        ("pause", "Q P P P P | A ."),
        ("icot", "Q | A ."),
        ("coconut", "Q [ T T T T ] | A ."),
        ("no_thought", "Q [ ] | A ."),
        ("pause_as_thought", "Q [ P P P P ] | A ."),
    ],
)
def test_a_finished_model_is_asked_as_its_last_stage_asked(method, wanted):
    assert said(curriculum(method).final()) == wanted


def test_stages_change_with_epochs_and_end_with_the_last():
    made = curriculum("coconut", epochs_per_stage=3)
    assert [made.stage(float(epoch)) for epoch in (0, 2.99, 3, 8.5, 9, 50)] == [0, 0, 1, 2, 3, 3]


def test_an_epoch_that_rounding_makes_short_is_whole():
    made = curriculum("coconut")
    assert made.stage(3 * (1 / 3) - 1e-12) == 1


def test_a_model_from_another_run_may_begin_later():
    made = curriculum("coconut", first_stage=2)
    assert [made.stage(float(epoch)) for epoch in (0, 1, 2)] == [2, 3, 3]


def test_icots_stage_changes_every_epoch():
    made = curriculum("icot", tokens_per_epoch=2, epochs_per_stage=7)
    assert [made.stage(float(epoch)) for epoch in (0, 1, 2, 3, 4)] == [0, 1, 2, 3, 3]


def test_the_published_keys_are_read_as_they_are():
    published = {
        "c_thought": 2,
        "epochs_per_stage": 3,
        "max_latent_stage": 3,
        "pad_latent_to_max": True,
        "uniform_prob": 0.0,
        "reset_optimizer": True,
    }
    assert CurriculumConfig.model_validate(published).model_dump().items() >= published.items()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"c_thougt": 2}, "has no field 'c_thougt'; did you mean 'c_thought'?"),
        ({"uniform_prob": 1.5}, "uniform_prob=1.5 must lie between 0 and 1"),
        ({"c_thought": 0}, "c_thought=0 must be at least 1"),
    ],
)
def test_wrong_keys_and_values_are_named(change, sentence):
    with pytest.raises(ConfigError) as error:
        parse(CurriculumConfig, change, "curriculum")
    assert sentence in str(error.value)


def drawn(made, stage, n_steps, n=4_000):
    rng = np.random.default_rng(0)
    return [made.drawn(stage, n_steps, rng) for _ in range(n)]


def test_without_mixing_every_row_is_in_its_stage():
    made = curriculum("coconut")
    assert set(drawn(made, 2, 3, 50)) == {made.layout(2)}


def test_rows_of_other_stages_are_mixed_in_as_often_as_said():
    made = curriculum("coconut", uniform_prob=0.4)
    layouts = drawn(made, 1, 3)
    # Of four stages 0 to 3, each as likely, the row's own is one
    for stage, share in ((0, 0.1), (1, 0.7), (2, 0.1), (3, 0.1)):
        found = layouts.count(made.layout(stage)) / len(layouts)
        assert abs(found - share) < 0.03


def test_smoothing_leaves_out_more_tokens_exponentially_seldom():
    made = curriculum("icot", longest=64, smoothing=1.0)
    gone = [layout.skipped_tokens - 8 for layout in drawn(made, 1, 3)]
    for further in range(4):
        wanted = math.exp(-further) * (1 - math.exp(-1))
        assert abs(gone.count(further) / len(gone) - wanted) < 0.03
    assert min(gone) == 0


def test_without_smoothing_no_token_more_is_left_out():
    made = curriculum("icot", longest=64, smoothing=0.0)
    assert {layout.skipped_tokens for layout in drawn(made, 1, 3, 50)} == {8}
