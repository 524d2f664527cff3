"""Each analysis finds what was planted, and does not find it where it was not."""

import copy

import pytest
import torch


@pytest.fixture
def looped(make_run):
    run = make_run("looped")
    return run.model.twin(), run.task.batch("test_ood", 20)


@pytest.fixture
def spaced(make_run):
    """A looped model whose embeddings are at right angles, so that each decodes to itself."""
    run = make_run("looped", ["model.d_model=32"])
    model = copy.deepcopy(run.model)
    with torch.no_grad():
        torch.nn.init.orthogonal_(model.embed.W_E, gain=32)
    return model, run.task.batch("test_ood", 20)


def test_lens_of_the_last_loop_is_the_model(looped):
    from analyses import logit_lens

    model, batch = looped
    lens = logit_lens(model, batch, top=3)
    probabilities = model(**batch.inputs).softmax(-1)
    torch.testing.assert_close(lens.probability[:, -1], probabilities.topk(3).values)


def test_lens_rows_are_the_input_and_every_loop(looped):
    from analyses import logit_lens

    model, batch = looped
    assert logit_lens(model, batch, n_loops=3).rows == [
        "input",
        "after loop 1",
        "after loop 2",
        "after loop 3",
    ]


def test_top_twenty_of_a_small_vocabulary_shows_what_there_is(looped):
    from analyses import logit_lens

    model, batch = looped
    assert logit_lens(model, batch, top=1_000).token.shape[-1] == model.cfg.d_vocab


def test_lens_refuses_a_model_whose_readout_is_not_its_output(looped):
    from analyses import logit_lens

    model, batch = looped
    seen = []

    def disturb(tensor, hook):
        seen.append(1)
        return tensor + len(seen)

    with (
        model.hooks(fwd_hooks=[("ln_final.hook_normalized", disturb)]),
        pytest.raises(RuntimeError, match="not the model's output"),
    ):
        logit_lens(model, batch)


def test_entropy_of_certainty_is_zero_and_never_nan(looped):
    from analyses import logit_lens

    model, batch = looped
    with model.hooks(fwd_hooks=[("recurrence.hook_state_post", lambda t, hook: t * 1e6)]):
        entropy = logit_lens(model, batch).entropy
    assert entropy.isfinite().all()


def test_a_planted_bridge_has_probability_and_cosine_one(spaced, plant_bridge):
    from analyses import bridge_alignment

    model, batch = spaced
    with model.hooks(fwd_hooks=plant_bridge(model, batch)):
        found = bridge_alignment(model, {"test_ood": batch})
    assert found.mean[0, 0, 0, 0] > 0.99
    assert found.mean[0, 1, 0, 0] == pytest.approx(1.0, abs=1e-5)


def test_an_untrained_model_has_no_bridge(looped):
    from analyses import bridge_alignment

    model, batch = looped
    found = bridge_alignment(model.untrained(), batch)
    assert found.high[0, 0, 0, 0] < 0.3
    assert abs(found.mean[0, 1, 0, 0]) < 0.4


def test_shuffled_bridges_are_the_control(spaced, plant_bridge):
    from analyses import bridge_alignment

    model, batch = spaced
    with model.hooks(fwd_hooks=plant_bridge(model, batch)):
        found = bridge_alignment(model, batch)
    assert found.control[0, 1, 0, 0] < found.mean[0, 1, 0, 0] - 0.5


def test_realignment_by_nothing_changes_nothing(looped):
    from analyses import realignment
    from workbench.instruments import read

    model, batch = looped
    found = realignment(model, batch, alphas=[0.0, 1.0])
    plain = read(model, batch).right[-1].float().mean()
    assert (found.accuracy[0, :, 0] == plain).all()


def test_realigning_to_a_decoded_bridge_equals_the_oracle(spaced, plant_bridge):
    from analyses import realignment

    model, batch = spaced
    with model.hooks(fwd_hooks=plant_bridge(model, batch)):
        found = realignment(model, batch, alphas=[0.5, 1.0])
    torch.testing.assert_close(found.accuracy[0, 0], found.accuracy[0, 2])


def test_realignment_needs_two_loops(make_run):
    from analyses import analyse

    with pytest.raises(ValueError, match="this model runs one loop"):
        analyse("realignment", make_run("transformer"), n=5)


def test_gate_maps_show_a_fixed_alpha_everywhere(make_run):
    from analyses import analyse

    found = analyse("gate_maps", make_run("discoloop", ["model.alpha=0.25"]), n=5).result
    assert found.mean.isfinite().all()
    assert (found.mean == 0.25).all()
    assert (found.sd == 0).all()


def test_gate_maps_name_a_family_that_has_a_gate(make_run):
    from analyses import analyse

    with pytest.raises(ValueError, match="family looped has no gate between loops; discoloop has"):
        analyse("gate_maps", make_run("looped"), n=5)


def test_gate_maps_show_an_edited_gate(make_run):
    from analyses import analyse

    edit = {"do": "clamp", "place": "recurrence.gate.hook_post", "low": 0.75, "high": 0.75}
    found = analyse("gate_maps", make_run("discoloop"), n=5, split="test_ood", edits=[edit]).result
    assert (found.mean == 0.75).all()


def test_attention_rows_add_up_to_one_and_look_back_only(looped):
    from analyses import attention

    model, batch = looped
    pattern = attention(model, batch).pattern
    torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))
    assert (pattern.triu(1) == 0).all()


def test_attention_of_mixed_lengths_leaves_padding_out(looped, make_run):
    from analyses import attention
    from workbench.tasks.batch import Batch

    model, chains = looped
    atoms = make_run("looped").task.split("train_atom")[:7]
    mixed = attention(model, Batch.cat([chains, atoms]))
    alone = attention(model, chains)
    torch.testing.assert_close(mixed.pattern[..., 2, :], alone.pattern[..., 2, :])
    torch.testing.assert_close(mixed.pattern.sum(-1), torch.ones(mixed.pattern.shape[:-1]))


def test_bootstrap_covers_the_mean_and_narrows_with_more_examples():
    from analyses.kit.spread import bootstrap

    values = torch.randn(4_000, generator=torch.Generator().manual_seed(0)) + 2
    few, many = bootstrap(values[:100]), bootstrap(values)
    assert few[1] < few[0] < few[2]
    assert (many[2] - many[1]) < (few[2] - few[1]) / 3
    assert many[2] - many[1] == pytest.approx(2 * 1.96 / 4_000**0.5, rel=0.15)


def test_bootstrap_leaves_absent_examples_out():
    from analyses.kit.spread import bootstrap

    mean, low, high = bootstrap(torch.tensor([[1.0, torch.nan, 1.0], [0.0, 0.0, torch.nan]]))
    assert mean.tolist() == [1.0, 0.0]
    assert low.tolist() == [1.0, 0.0] and high.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "logit_lense"}, "no analysis 'logit_lense'; did you mean 'logit_lens'?"),
        ({"split": "test_odd"}, "no split 'test_odd'; did you mean 'test_ood'?"),
        ({"step": 3}, "keeps no step 3; the nearest it keeps is"),
        ({"topp": 3}, "logit_lens has no option 'topp'; did you mean 'top'?"),
        ({"question": ""}, "the question is empty"),
        ({"question": "A1 r99"}, "unknown word 'r99'"),
        ({"n_loops": 0}, "n_loops=0 must be at least 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(make_run, options, sentence):
    from analyses import analyse

    options = {"name": "logit_lens"} | options
    with pytest.raises(ValueError) as caught:
        analyse(options.pop("name"), make_run("looped"), **options)
    assert sentence in str(caught.value)


def test_lens_of_rows_of_unequal_length_counts_no_padding_and_no_absent_bridge():
    from analyses import logit_lens
    from workbench.models import build_model, model_config
    from workbench.tasks import build_task

    few = dict.fromkeys(
        (f"n_{s}_{h}" for s in ("train", "test_id", "test_ood") for h in ("two", "three")), 6
    )
    task = build_task("three_hop", n_entities=6, n_relations=4, out_degree=3, **few)
    shape = dict(d_model=16, n_heads=2, n_layers=1, d_mlp=32, n_ctx=4, d_vocab=task.d_vocab)
    model = build_model(model_config({"family": "looped"} | shape)).eval()
    model.tokenizer = task.vocabulary
    lens = logit_lens(model, task.split("test_id"))
    short = lens.answer_probability[task.split("test_id").hops == 2]
    assert short[..., 3].isnan().all() and short[..., :3].isfinite().all()
    assert len(lens.figure().data) == 4
    question = task.examples(task.split("test_id")[:1])[0]["question"]
    for found in (lens, logit_lens(model, task.question(question))):
        assert "nan" not in found.summary()


def test_curves_are_drawn_beside_the_best_shortcut_of_the_tests(run_with_history):
    from analyses import analyse

    flat = [0.1, 0.5, 0.9, 0.9, 0.1, 0.1]
    run = run_with_history(flat, flat)
    analysed = analyse("stage_collapse", run)
    best = max(run.task.shortcuts("test_id").values())
    assert analysed.result.shortcut["test_id"] == best
    drawn = [shape.y0 for shape in analysed.figure().layout.shapes if shape.y0 == shape.y1]
    assert best in drawn


def test_realignment_always_measures_the_state_left_alone(looped):
    from analyses import realignment

    model, batch = looped
    assert realignment(model, batch, alphas=[0.5]).alphas == (0.0, 0.5)


def test_the_control_of_a_lone_question_draws_bridges_and_never_the_true_one(make_run):
    from analyses.change.realigned_answer import OTHERS, _with_other_bridges

    task = make_run("looped").task
    question = task.question(task.examples(task.batch("test_ood", 1))[0]["question"])
    words = task.bridge_words
    assert {task.vocabulary.words[token][0] for token in words} == {"A", "B"}  # no relation
    drawn = _with_other_bridges(question, words).bridge
    assert len(drawn) == OTHERS and set(drawn.flatten().tolist()) <= set(words)
    assert not (drawn == question.bridge).any()
    assert len(drawn.unique()) > OTHERS / 2


def test_the_task_is_asked_for_the_controls_words(make_run):
    from analyses import analyse
    from analyses.change.realigned_answer import realigned_answer

    run = make_run("looped")
    batch = run.task.batch("test_ood", 1)
    asked = analyse("realigned_answer", run, n=1).result
    given = realigned_answer(run.model, batch, bridge_words=run.task.bridge_words)
    assert torch.equal(asked.control, given.control)
    with pytest.raises(ValueError, match="realigned_answer has no option 'bridge_words'"):
        analyse("realigned_answer", run, bridge_words=[1])
