"""What answers depend on: ablations, the number of thoughts, paired tests, gates fixed shut."""

import pytest
import torch

STATE, THOUGHT = "recurrence.hook_state_pre", "recurrence.hook_thought"


def batch_of(run, n=8, thoughts=None):
    task = (
        run.task if thoughts is None else run.task.laid_out(run.task.layout.with_fillers(thoughts))
    )
    return task, task.batch("test", n, 0)


def problems_of(task, batch):
    return [task.problems("test")[number] for number in batch.number.tolist()]


# -- ablation


def ablated(run, model, hooks, **options):
    from analyses import ablation

    task, batch = batch_of(run)
    with model.hooks(fwd_hooks=hooks):
        found = ablation(model, batch, task=task, problems=problems_of(task, batch), **options)
    return found, dict(zip(found.names, found.accuracy.tolist(), strict=True)), batch


def test_an_answer_that_the_last_thought_carries_is_lost_with_it(reasoner, make_thinking_run):
    right = batch_of(make_thinking_run("coconut"))[1].candidates[:, 0]

    def in_last_thought(model, thought):
        return model.W_E[right] if thought == 1 else model.W_E[:1]

    run, model, hooks = reasoner("coconut", in_last_thought)
    found, accuracy, _batch = ablated(run, model, hooks, split="test")
    assert found.right_as_is.all()
    others = float((right == right.roll(1)).float().mean())
    assert accuracy["own thoughts put back"] == 1
    assert accuracy["thought 1: set to zero"] == accuracy["thought 1: of another question"] == 1
    assert accuracy["thought 2: set to zero"] == accuracy["all thoughts: set to zero"] == 0
    assert accuracy["thought 2: of another question"] == pytest.approx(others)
    assert accuracy["thought 2: mean thought"] < 1
    assert not any("shut" in name for name in accuracy)
    assert found.floor == run.task.majority_rate("test")
    lost = found.to_frame().set_index("condition").loc["thought 2: set to zero"]
    assert (lost.lost, lost.gained, lost.p_value) == (8, 0, pytest.approx(2 / 2**8))
    assert lost.p_holm >= lost.p_value and lost.difference == -1


def test_an_answer_that_the_stream_carries_is_lost_without_read_or_write(
    reasoner, make_thinking_run
):
    right = batch_of(make_thinking_run("agclr"))[1].candidates[:, 0]

    def then_nothing(model, thought):
        return model.W_E[right] if thought == 0 else torch.zeros(1, 16)

    run, model, hooks = reasoner("agclr", then_nothing)
    with torch.no_grad():  # c is what was thought, its mean and size aside
        model.embed.W_E -= model.W_E.mean(1, keepdim=True)
        model.embed.W_E /= model.W_E.norm(dim=1, keepdim=True)
    found, accuracy, _ = ablated(run, model, hooks)
    assert found.right_as_is.all()
    for gone in ("read shut", "write shut", "all gates shut", "thought 1: set to zero"):
        assert accuracy[gone] == 0, gone
    kept = ("forget shut", "write frozen after 1 thought", "stream held after 1 thought")
    for kept_name in kept:
        assert accuracy[kept_name] == 1, kept_name
    assert found.floor is None


def test_a_gate_is_shut_exactly_or_as_published(make_thinking_run):
    from analyses.change.ablation import SHARES, _shut

    run = make_thinking_run("agclr")
    batch = batch_of(run)[1]
    shares = {}
    for name, share in SHARES.items():
        hooks = _shut(["read", "forget"], share, range(2))(slice(None))
        with run.model.hooks(fwd_hooks=hooks):
            _, cache = run.model.run_with_cache(**batch.inputs)
        shares[name] = cache["recurrence.read.hook_post"]
        same = (cache[THOUGHT] == cache[STATE]).all()
        assert bool(same) == (name == "zero")  # then CoCoNuT's thoughts, bit for bit
    assert (shares["zero"] == 0).all()
    assert float(shares["published"].max()) == pytest.approx(4.54e-5, rel=1e-3)


def test_a_held_stream_stays_and_a_frozen_one_is_normed_again(make_thinking_run):
    from analyses.change.ablation import _held, _shut

    run = make_thinking_run("agclr")
    batch = batch_of(run, thoughts=4)[1]
    with run.model.hooks(fwd_hooks=_held(2)(slice(None))):
        _, cache = run.model.run_with_cache(**batch.inputs)
    stream = cache["recurrence.hook_stream"]
    assert (stream[1] != stream[0]).any()
    assert (stream[2] == stream[1]).all() and (stream[3] == stream[1]).all()
    with run.model.hooks(fwd_hooks=_shut(["write"], 0.0, range(2, 4))(slice(None))):
        _, cache = run.model.run_with_cache(**batch.inputs)
    stream = cache["recurrence.hook_stream"]
    torch.testing.assert_close(stream[2], run.model.recurrence.ln_stream(stream[1]))


def test_large_batches_are_exchanged_across_their_parts(make_thinking_run, monkeypatch):
    from analyses.read import thought_answers
    from workbench.instruments import speaking

    run = make_thinking_run("coconut")
    task, batch = batch_of(run)
    values = torch.arange(2 * 8 * 16.0).view(2, 8, 16)
    values[1, [2, 5]] = torch.nan  # rows without a second thought
    other = thought_answers.of_another_row(values)
    assert (other[0] == values[0].roll(1, dims=0)).all()
    assert (other[1, 3] == values[1, 1]).all() and (other[1, 0] == values[1, 7]).all()
    assert other[1, [2, 5]].isnan().all()
    put = []

    def note(words, hook):
        put.append((hook.clock.loop, words[:, 0].clone()))

    note.by_pass = True
    monkeypatch.setattr(speaking, "ROWS", 3)
    hooks = thought_answers.put_thoughts(values, [0])

    def heard(rows):
        return [*hooks(rows), ("hook_embed", note)]

    thought_answers.said_under(run.model, task, batch, heard)
    seen = [words for loop, words in put if loop == 1]
    assert [len(words) for words in seen] == [3, 3, 2]
    torch.testing.assert_close(torch.cat(seen), values[0])
    with run.model.hooks(fwd_hooks=[("hook_embed", note)]):  # an edit may be of certain rows
        put.clear()
        thought_answers.said_under(run.model, task, batch, hooks)
    seen = [words for loop, words in put if loop == 1]
    assert [len(words) for words in seen] == [8]


# -- thought_count


def test_thoughts_that_come_too_few_or_too_many_miss_the_answer(reasoner, make_thinking_run):
    from analyses import thought_count

    candidates = batch_of(make_thinking_run("coconut"))[1].candidates

    def at_the_second(model, thought):
        if thought == 3:  # the fourth thinks of the other choice
            return model.W_E[candidates[:, 1]]
        return model.W_E[candidates[:, 0]] if thought == 1 else torch.zeros(1, 16)

    run, model, hooks = reasoner("coconut", at_the_second)
    task, batch = batch_of(run)
    with model.hooks(fwd_hooks=hooks, must_fire=False):
        found = thought_count(model, batch, task=task, problems=problems_of(task, batch))
    assert found.own == 2 and len(found.said) == 5
    assert found.shares[:, 0, 0].tolist() == [0, 0, 1, 0, 0]
    assert found.shares[:, 1, 0].tolist() == [0, 0, 0, 0, 1]
    assert found.shares[:, 2, 0].tolist() == [1, 1, 0, 1, 0]
    assert found.control[2, 0] < 1 and found.gain[2, 0] > 0
    assert not found.floors
    assert "1.000 [1.000, 1.000] with 2" in found.summary()


def test_an_answer_is_sorted_by_what_it_says(make_thinking_run):
    from analyses.change.thought_count import KINDS, _kind

    task = make_thinking_run("coconut").task
    problem = task.problems("test")[0]
    _, right, wrong = task.decides(problem)
    said = {right: "right", wrong: "the wrong concept", "###": "another answer", "": "no answer"}
    for answer, kind in said.items():
        assert KINDS[_kind(task, problem, answer)] == kind


def test_numbers_of_thoughts_that_do_not_fit_are_refused(make_thinking_run):
    from analyses import analyse

    run = make_thinking_run("coconut")
    with pytest.raises(ValueError, match=r"most=900 thoughts do not fit: .* leave room for \d+ in"):
        analyse("thought_count", run, n=4, most=900)
    with pytest.raises(ValueError, match="most=1 must be at least 2, the thoughts of the layout"):
        analyse("thought_count", run, n=4, most=1)


# -- paired tests


def test_the_paired_test_is_exact():
    from analyses.kit.paired import difference, holm, mcnemar

    assert mcnemar(5, 0) == mcnemar(0, 5) == 2 / 32
    assert mcnemar(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1
    assert 0 < mcnemar(2_000, 1_500) < 1e-15
    found = difference(torch.tensor([True] * 6 + [False] * 4), torch.tensor([False, True] * 5))
    assert (found.gained, found.lost, found.mean) == (3, 2, pytest.approx(0.1))
    assert found.low < 0.1 < found.high
    assert holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])


def test_problems_are_laid_out_as_those_of_a_split(make_thinking_run):
    task, batch = batch_of(make_thinking_run("coconut"))
    again = task.lay_out_problems(problems_of(task, batch))
    assert (again.tokens == batch.tokens).all() and (again.prompt == batch.prompt).all()
    assert again.number.tolist() == list(range(8))


# -- gates fixed shut in training


def test_a_gate_removed_in_training_stays_shut(make_thinking_run):
    model = make_thinking_run("agclr", ["model.shut=[read]"]).model
    read, write = model.recurrence.read, model.recurrence.write
    assert (read.b_gate == -10).all() and (read.W_gate == 0).all()
    assert not read.b_gate.requires_grad and not read.W_gate.requires_grad
    assert (write.W_gate != 0).any() and write.b_gate.requires_grad


def test_a_removed_gate_stays_shut_when_training_starts_from_open_ones(make_thinking_run):
    from workbench.models import build_model, model_config
    from workbench.training.start import start_from

    run = make_thinking_run("agclr")
    model = build_model(model_config(run.recipe.model | {"shut": ["forget"]}))
    start_from(model, str(run.path), run.task.vocabulary)
    assert (model.recurrence.forget.b_gate == -10).all()
    assert (model.recurrence.forget.W_gate == 0).all()
    torch.testing.assert_close(model.recurrence.read.W_gate, run.model.recurrence.read.W_gate)


def test_there_are_three_gates_to_remove(make_thinking_run):
    from workbench.models import model_config
    from workbench.settings.config import ConfigError

    shape = make_thinking_run("agclr").recipe.model
    with pytest.raises(ConfigError, match=r"shut.0='reed': Input should be 'read', 'forget' or"):
        model_config(shape | {"shut": ["reed"]})
