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
@pytest.mark.parametrize(("bias", "share"), [(-20.0, 0.0), (20.0, 1.0)])
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
    from analyses.read.memory_retention import cosines

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
    from analyses.read.concept_probe import _wanted

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
