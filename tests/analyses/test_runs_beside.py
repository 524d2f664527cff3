"""Runs side by side: planted answers, hand-counted tests, stages and costs."""

import json

import pytest
import torch


@pytest.fixture
def word(make_staged_run):
    """The n-th commonest answer of the tests, and the share of questions that have it."""
    from collections import Counter

    task = make_staged_run("model.d_model=128", "model.n_layers=1", "model.tie_embeddings=false")
    known = Counter(problem.answer for problem in task.task.problems("test")).most_common()
    return lambda n: (known[n][0], known[n][1] / 20)


def test_mcnemar_is_the_binomial_test_of_the_questions_that_differ():
    from analyses.kit.paired import changes, mcnemar, probabilities

    one = torch.tensor([True] * 6 + [False] * 1 + [True] * 3)
    other = torch.tensor([False] * 6 + [True] * 1 + [True] * 3)
    assert changes(one, other) == (6, 1)
    assert mcnemar(*changes(one, other)) == pytest.approx(2 * (1 + 7) / 2**7)
    assert mcnemar(*changes(other, one)) == mcnemar(*changes(one, other))
    assert mcnemar(*changes(one, one)) == 1.0
    assert float(probabilities([mcnemar(400, 50)])[0]) > 0  # which single precision would not hold


def test_accuracies_and_differences_are_the_planted_ones(plant_words, always, word):
    from analyses import analyse

    (often, high), (seldom, low) = word(0), word(3)
    run, other = plant_words("often", always(often)), plant_words("seldom", always(seldom))
    found = analyse("compare", run, beside=[str(other.path)]).result
    assert found.accuracy.tolist() == pytest.approx([high, low])
    assert float(found.difference[1]) == pytest.approx(low - high)
    assert float(found.difference_low[1]) <= low - high <= float(found.difference_high[1])
    # No question has both answers, so all that are right differ
    b, c = round(20 * high), round(20 * low)
    from math import comb

    wanted = 2 * sum(comb(b + c, k) for k in range(c + 1)) / 2 ** (b + c)
    assert float(found.p_value[1]) == pytest.approx(min(wanted, 1.0))
    assert float((found.by_level * found.by_level_n).sum(1)[0]) == pytest.approx(20 * high)


def test_one_answer_to_all_is_never_right_with_its_twin(plant_words, always, word):
    from analyses import analyse

    found = analyse("compare", plant_words("run", always(word(0)[0]))).result
    assert found.has_twins
    assert float(found.both[0]) == 0.0


def test_runs_of_one_recipe_have_a_mean_and_a_deviation(plant_words, always, word):
    from analyses import analyse

    (often, high), (seldom, low) = word(0), word(3)
    run, other = plant_words("often", always(often)), plant_words("seldom", always(seldom))
    found = analyse("compare", run, beside=[str(other.path)]).result
    assert found.recipes == ("tiny",)
    assert float(found.recipe_mean[0]) == pytest.approx((high + low) / 2)
    assert float(found.recipe_sd[0]) == pytest.approx(abs(high - low) / 2**0.5)


def test_a_run_beside_itself_is_refused(make_staged_run):
    from analyses import analyse
    from workbench.settings.config import ConfigError

    run = make_staged_run()
    with pytest.raises(ConfigError, match="the run run is named twice"):
        analyse("compare", run, beside=[str(run.path)])


def test_runs_that_loop_are_refused(make_run):
    from analyses import analyse
    from workbench.settings.config import ConfigError

    with pytest.raises(ConfigError, match="run is on two_hop, not on worded problems"):
        analyse("compare", make_run("looped"))


@pytest.fixture
def staged(plant_words, always, word):
    """A run with steps 2 and 4 in stages 0 and 1, which answer with words of their own."""

    def make(accuracies):
        answers = {2: always(word(0)[0]), 4: always(word(3)[0])}
        run = plant_words("staged", always(word(1)[0]), by_step=answers)
        lines = [
            {"split": "valid", "stage": stage, "thoughts": stage, "step": step, "accuracy": share}
            for stage, step, share in accuracies
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (run.path / "history.jsonl").write_text(text)
        return run

    return make


def test_every_stages_weights_are_asked(staged, word):
    from analyses import analyse

    run = staged([(0, 1, 0.9), (0, 2, 0.1), (1, 4, 0.3)])  # of step 1 no weights are kept
    found = analyse("stage_curve", run).result
    assert found.step.tolist() == [2, 4]
    assert found.stage.tolist() == found.thoughts.tolist() == [0, 1]
    assert found.accuracy.tolist() == pytest.approx([word(0)[1], word(3)[1]])
    assert found.n.tolist() == [20, 20]


def test_a_history_is_taken_at_its_best(staged):
    from analyses import analyse

    run = staged([(0, 1, 0.9), (0, 2, 0.1), (1, 3, 0.3), (1, 4, 0.3)])
    found = analyse("stage_curve", run, source="history").result
    assert found.step.tolist() == [1, 3]
    assert found.accuracy.tolist() == pytest.approx([0.9, 0.3])
    assert found.n.tolist() == [10, 10]


def test_a_history_without_stages_is_refused_in_a_sentence(staged):
    from analyses import analyse
    from workbench.settings.config import ConfigError

    with pytest.raises(ConfigError, match="keeps weights of no step that was measured on valid"):
        analyse("stage_curve", staged([(0, 1, 0.9)]))


def test_operations_are_those_counted_by_hand(build):
    """Width 2, one head, a layer of 3 hidden units, 5 words; 3 positions, one of them a thought."""
    from workbench.instruments.flops import forward_flops

    shape = dict(d_model=2, n_heads=1, n_layers=1, d_mlp=3, d_vocab=5, latent_token=4)
    maps = 3 * (4 * 2 * 2 + 2 * 2 * 3)  # queries, keys, values, output; into and out of the layer
    scores = (1 + 2 + 3) * 2  # each position looks at itself and those before it
    values, read = scores, 2 * 5 * 2
    model = build("coconut", **shape)
    assert forward_flops(model, 3, 1, 2) == 2 * (maps + scores + values + read)
    gates = 3 * 2 * 2
    model = build("agclr", **shape)
    assert forward_flops(model, 3, 1, 2) == 2 * (maps + scores + values + read + gates)


def test_thoughts_and_words_said_are_passes(plant_words, always, word):
    from analyses import analyse

    answer, share = word(0)
    found = analyse("cost", plant_words("run", always(answer)), timed=1, repeats=1).result
    assert found.thoughts.tolist() == [0, 1, 2]
    assert found.passes.tolist() == [3, 4, 5]  # the mark, the answer, the end
    assert (found.positions.diff() == 1).all()
    assert (found.flops.diff() > 0).all()
    assert found.accuracy.tolist() == pytest.approx([share] * 3)


def test_a_chain_is_cut_after_a_finished_step(plant_words, word):
    """Every chain is "x . y ." and then the answer."""
    from analyses.measure.spending import Speaker

    answer, _share = word(0)
    x, y = (w for w in ("Every", "is"))
    shares = {"": {x: 1.0}, x: {y: 1.0}, y: {".": 1.0}, ".": {"###": 1.0}}
    shares |= {"###": {answer: 1.0}, answer: {x: 0.4, "<|end|>": 0.6}}
    run = plant_words("cot", shares, "training.curriculum.method=cot")
    numbers = [n for n, p in enumerate(run.task.problems("test")) if answer not in p.question[-30:]]
    speaker = Speaker(run.model, run.task, "test", numbers)
    whole = speaker.after_words(run.task.layout, 3)
    assert set(whole.n_said) == {6}  # x y . ### answer end
    cut = speaker.after_words(run.task.layout, 2)
    assert set(cut.n_said) == {2}  # answer end: no step was finished
    assert (cut.passes == 2).all()
    assert (whole.positions - cut.positions == 3).all()
    assert torch.equal(whole.right, cut.right)


def test_answers_after_thoughts_are_the_planted_ones(plant_words, always, word):
    from analyses import analyse

    answer, share = word(0)
    run = plant_words("run", always(answer))
    found = analyse("answers", run, n=20).result
    assert found.right.float().mean(1).tolist() == pytest.approx([share] * 3)
    wanted = torch.tensor([true == answer for true in found.true]).float().expand(3, -1)
    torch.testing.assert_close(found.probability, wanted, atol=1e-3, rtol=0)
    assert found.said[0][0] == f"### {answer}"
    question = run.task.problems("test")[0].question
    one = analyse("answers", run, question=question)
    assert f"the true answer is {one.result.true[0]}" in one.summary()
    assert one.figure().data[0].text[0] == answer
