"""What the analyses of thoughts find where it was planted."""

import pytest
import torch

STATE, THOUGHT = "recurrence.hook_state_pre", "recurrence.hook_thought"
GATES = ("read", "forget", "write")


def batch_of(run, n=8, thoughts=None):
    task = (
        run.task if thoughts is None else run.task.laid_out(run.task.layout.with_fillers(thoughts))
    )
    return task, task.batch("test", n, 0)


def problems_of(task, batch):
    return [task.problems("test")[number] for number in batch.number.tolist()]


def mixed(task, counts):
    """Rows with different numbers of thoughts."""
    layouts = [task.layout.with_fillers(count) for count in counts]
    return task.lay_out("test", range(len(counts)), layouts)


# -- gate_maps


def test_gates_of_an_untrained_model_are_those_of_its_biases(make_thinking_run):
    from analyses import gate_maps

    run = make_thinking_run("agclr")
    found = gate_maps(run.model.untrained(), batch_of(run)[1])
    biases = torch.tensor([-0.28, -1.5, -0.28])  # as published for ProsQA
    expected = biases.sigmoid()[:, None, None].expand_as(found.after)
    torch.testing.assert_close(found.after, expected)
    torch.testing.assert_close(found.before, biases[:, None, None].expand_as(found.before))
    assert float(found.after_sd.max()) < 1e-6 and float(found.sd.max()) < 1e-6
    torch.testing.assert_close(found.untrained, expected[..., 0])


@pytest.mark.parametrize("gate", range(3))
@pytest.mark.parametrize("bias, share", [(-20.0, 0.0), (20.0, 1.0)])
def test_opening_or_shutting_a_gate_moves_that_panel_alone(make_thinking_run, gate, bias, share):
    from analyses import gate_maps

    run = make_thinking_run("agclr")
    model = run.model.untrained()
    gates = [model.recurrence.read, model.recurrence.forget, model.recurrence.write]
    with torch.no_grad():
        for index, each in enumerate(gates):
            each.b_gate.fill_(bias if index == gate else 0.0)
    found = gate_maps(model, batch_of(run, thoughts=3)[1])
    expected = [0.5, 0.5, 0.5]
    expected[gate] = share
    torch.testing.assert_close(found.mean[:, 2], torch.tensor(expected))
    assert found.shut[gate, 0] == (share == 0) and found.open[gate, 0] == (share == 1)
    assert f"{GATES[gate]} {share:.3f} ± 0.000 at thought 1" in found.summary()


def test_thoughts_follow_a_known_memory_as_the_stated_convention_says(make_thinking_run):
    run = make_thinking_run("agclr")
    model, batch = run.model.untrained(), batch_of(run, n=1, thoughts=3)[1]
    for forget, state_left in ((1.0, 0.0), (0.0, 1.0)):
        hooks = [
            ("recurrence.forget.hook_post", lambda t, hook, f=forget: torch.full_like(t, f)),
            ("recurrence.read.hook_post", lambda t, hook: torch.full_like(t, 0.5)),
        ]
        with model.hooks(fwd_hooks=hooks):
            _, cache = model.run_with_cache(**batch.inputs)
        states, thoughts = cache[STATE], cache[THOUGHT]
        stream = torch.cat((torch.zeros_like(states[:1]), cache["recurrence.hook_stream"][:-1]))
        torch.testing.assert_close(thoughts, state_left * states + 0.5 * stream)


def test_channels_keep_one_order_for_all_gates_and_thoughts(make_thinking_run):
    from analyses import gate_maps

    run = make_thinking_run("agclr")
    model = run.model.untrained()
    with torch.no_grad():
        model.recurrence.read.b_gate.copy_(torch.arange(16).roll(5) / 10)
        model.recurrence.write.b_gate.copy_(torch.arange(16) / 10)
    found = gate_maps(model, batch_of(run)[1])
    assert found.order.tolist() == torch.arange(16).roll(5).argsort().tolist()
    assert (found.after[0].diff(dim=-1) >= 0).all()
    written = (found.order / 10).sigmoid().expand_as(found.after[2])
    torch.testing.assert_close(found.after[2], written)
    frame = found.to_frame()
    first = frame[(frame.gate == "write") & (frame.channel == 3) & (frame.thought == "thought 2")]
    assert float(first["before"].item()) == pytest.approx(0.3)


def test_rows_count_only_in_thoughts_that_they_have(make_thinking_run):
    from analyses import gate_maps, memory_retention

    run = make_thinking_run("agclr")
    batch = mixed(run.task, [3, 1, 0, 2])
    model = run.model
    found = gate_maps(model, batch)
    assert found.n.tolist() == [3, 2, 1]
    alone = gate_maps(model, run.task.lay_out("test", [0], run.task.layout.with_fillers(3)))
    last = dict(zip(found.order.tolist(), found.after[0, 2].tolist(), strict=True))
    own = dict(zip(alone.order.tolist(), alone.after[0, 2].tolist(), strict=True))
    assert last == pytest.approx(own, abs=1e-5)
    assert memory_retention(model, batch).n.tolist() == [3, 2, 1]


def test_a_family_without_gates_and_rows_without_thoughts_are_told_so(make_thinking_run):
    from analyses import analyse

    with pytest.raises(ValueError, match="family coconut has no gates between thoughts; agclr has"):
        analyse("gate_maps", make_thinking_run("coconut"), n=2)
    with pytest.raises(ValueError, match="the rows hold no thoughts; ask for one or more with"):
        analyse("memory_retention", make_thinking_run("coconut"), n=2, thoughts=0)


# -- memory_retention


def test_cosines_are_of_the_first_pass_of_the_same_row_and_of_all_others():
    from analyses.memory_retention import cosines

    first = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    second = torch.tensor([[0.0, 1.0], [0.0, 5.0], [torch.nan, torch.nan]])
    same, other = cosines(torch.stack([first, second]))
    half = 2**-0.5
    torch.testing.assert_close(same[0], torch.ones(3))
    torch.testing.assert_close(same[1], torch.tensor([0.0, 1.0, torch.nan]), equal_nan=True)
    torch.testing.assert_close(other[0], torch.tensor([half, half, 2 * half]) / 2)
    # row 0 of pass 2 with rows 1 and 2 of pass 1, row 1 with rows 0 and 2
    expected = torch.tensor([(1 + half) / 2, half / 2, torch.nan])
    torch.testing.assert_close(other[1], expected, equal_nan=True)


def test_what_all_questions_share_is_in_the_control_and_gone_when_centred(make_thinking_run):
    from analyses import memory_retention

    run = make_thinking_run("coconut")
    batch = batch_of(run, n=6)[1]

    def plant(state, hook):
        own = torch.eye(16)[: len(state)]
        # In the second thought every row turns to something of its own that is new
        return 3 * torch.eye(16)[15] + (own if hook.clock.loop == 0 else own.roll(6, dims=1))

    with run.model.hooks(fwd_hooks=[(STATE, plant)]):
        found = memory_retention(run.model, batch)
        centred = memory_retention(run.model, batch, centred=True)
    assert found.kinds == ("raw state h",)
    assert found.same[0, 0].tolist() == pytest.approx([1.0, 0.9])
    assert found.other[0, 0].tolist() == pytest.approx([0.9, 0.9])
    assert found.above[0, :, 1].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert centred.same[0, 0].tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
    assert centred.other[0, 0, 0] == pytest.approx(-1 / 5)
    assert "(another question 0.900, untrained 0." in found.summary()
    assert 0 < found.untrained[0, 1] < 1  # the hooks are the model's, not the twin's


def test_one_question_has_no_control_and_no_centre(make_thinking_run):
    from analyses import memory_retention

    run = make_thinking_run("agclr")
    batch = batch_of(run, n=1)[1]
    found = memory_retention(run.model, batch)
    assert found.other.isnan().all() and found.same.isfinite().all()
    assert found.kinds == ("raw state h", "gated state h'", "stream c")
    assert "another question" not in found.summary()
    with pytest.raises(ValueError, match="centred=true needs 3 questions or more"):
        memory_retention(run.model, batch, centred=True)


# -- concept_probe


def test_planted_concepts_are_the_nearest_and_those_of_others_are_not(make_thinking_run):
    from analyses import concept_probe

    run = make_thinking_run("agclr")
    task, batch = batch_of(run)
    model = run.model

    def plant(thought, hook):
        return 0.01 * model.W_E[batch.bridge[:, hook.clock.loop]]

    with model.hooks(fwd_hooks=[(THOUGHT, plant)]):
        found = concept_probe(model, batch, task=task, top=1)
    at = {view: i for i, view in enumerate(found.views)}
    assert list(at) == [
        "state h, cosine",
        "state h, readout",
        "thought h', cosine",
        "thought h', readout",
        "stream c, cosine",
    ]
    planted = at["thought h', cosine"]
    assert found.found[planted, 0, 0].tolist() == [1.0, 1.0]
    assert (found.shuffled[planted, 0, 0] < 1).all()
    assert (found.found[at["state h, cosine"], 0, 0] < 0.5).all()
    first = [task.vocabulary.words[word] for word in batch.bridge[0, :2]]
    assert [words[0] for words in found.words[planted]] == first
    torch.testing.assert_close(found.values[planted, :, 0], torch.ones(2))


def test_two_thoughts_a_step_look_for_one_steps_concept(make_thinking_run):
    from analyses.concept_probe import _wanted

    task, _ = batch_of(make_thinking_run("coconut"))
    batch = mixed(task, [4, 2])
    wanted = _wanted(batch, 4, per_step=2)
    assert wanted[0, :, 0].tolist() == [int(b) for b in batch.bridge[0, [0, 0, 1, 1]]]
    assert wanted[1, :, 1].tolist() == [int(batch.candidates[1, 0])] * 2 + [-1, -1]


def test_more_nearest_words_than_there_are_shows_all(make_thinking_run):
    from analyses import concept_probe

    run = make_thinking_run("coconut")
    task, batch = batch_of(run, n=2)
    found = concept_probe(run.model, batch, task=task, top=1_000)
    assert found.nearest == len(task.vocabulary) == found.n_vocab
    assert found.views == ("state h, cosine", "state h, readout")
    with pytest.raises(ValueError, match="top=0 must be at least 1"):
        concept_probe(run.model, batch, task=task, top=0)


def test_a_typed_question_lists_its_words(make_thinking_run):
    from analyses import analyse

    run = make_thinking_run("agclr")
    question = run.task.problems("test")[0].question
    found = analyse("concept_probe", run, question=question)
    assert found.summary().startswith("nearest words after thought 2: state h, cosine ")
    assert len(found.figure().data) == 1


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
    found, accuracy, batch = ablated(run, model, hooks, split="test")
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
    from analyses.ablation import SHARES, _shut

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
    from analyses.ablation import _held, _shut

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
    from analyses import thought_answers
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
    from analyses.thought_count import KINDS, _kind

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
    from analyses.paired import difference, holm, mcnemar

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
    from workbench.config import ConfigError
    from workbench.models import model_config

    shape = make_thinking_run("agclr").recipe.model
    with pytest.raises(ConfigError, match="shut.0='reed': Input should be 'read', 'forget' or"):
        model_config(shape | {"shut": ["reed"]})
