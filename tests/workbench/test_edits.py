import json

import pytest
import torch
import torch.nn.functional as F

from workbench.edits import EDITS, edit_hooks, parse_edits, to_plain
from workbench.hooks.cache import UnknownHook
from workbench.settings.config import ConfigError
from workbench.tasks import build_task

POST, PRE = "recurrence.hook_state_post", "recurrence.hook_state_pre"
ATTN, PATTERN = "blocks.0.hook_attn_out", "blocks.0.attn.hook_pattern"
PLACES = [ATTN, PATTERN, PRE, POST, "blocks.1.attn.hook_z", "blocks.0.mlp.hook_post", "hook_embed"]
EVERY_KIND = [{"do": name} | EDITS.example(name) for name in EDITS] + [
    {"do": "add", "place": ATTN, "value": [0.5] * 16},
    {"do": "patch", "place": POST, "question": "A1 r1 r2", "from_loop": 0, "from_position": 1},
    {"do": "realign", "positions": None},
]
LOOPING = [edit for edit in EVERY_KIND if edit["do"] != "mix"]


@pytest.fixture
def model(speaker):
    return speaker("discoloop", n_loops=3)


@pytest.fixture
def batch(world):
    return world.batch("test_id", 4)


def run(model, batch, *edits, **options):
    """Logits and cache under edits given as plain data."""
    hooks = edit_hooks(parse_edits(list(edits)), model, batch)
    with torch.no_grad(), model.hooks(hooks):
        return model.run_with_cache(**batch.inputs, **options)


def refusal(*edits):
    with pytest.raises(ConfigError) as error:
        parse_edits(list(edits))
    return str(error.value)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_does_what_it_is_registered_for(name):
    assert EDITS[name].model_fields["do"].default == name


@pytest.mark.parametrize("edit", EVERY_KIND, ids=lambda edit: edit["do"])
def test_an_edit_comes_back_from_json(edit):
    (made,) = parse_edits([edit])
    assert parse_edits(json.loads(json.dumps(to_plain([made])))) == [made]


def test_what_is_stored_of_an_edit_says_what_it_was_told():
    (stored,) = to_plain(parse_edits([EVERY_KIND[0]]))
    assert stored == EVERY_KIND[0]


def test_zero_puts_zero(model, batch):
    _, cache = run(model, batch, {"do": "zero", "place": ATTN, "loops": [1]})
    assert not cache[ATTN][1].any() and cache[ATTN][0].all()


def test_mean_puts_the_mean_over_rows(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "mean", "place": ATTN, "loops": [0]})
    torch.testing.assert_close(cache[ATTN][0], clean[ATTN][0].mean(0).expand(4, -1, -1))


def test_add_adds_a_number_or_a_vector(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "add", "place": ATTN, "value": 0.5, "loops": [0]})
    torch.testing.assert_close(cache[ATTN][0], clean[ATTN][0] + 0.5)
    vector = [float(n) for n in range(16)]
    _, cache = run(model, batch, {"do": "add", "place": ATTN, "value": vector, "loops": [0]})
    torch.testing.assert_close(cache[ATTN][0], clean[ATTN][0] + torch.arange(16.0))


def test_a_vector_of_another_width_is_refused(model, batch):
    with pytest.raises(ConfigError, match=r"add: 3 values do not fit .*hook_attn_out, .* 16"):
        run(model, batch, {"do": "add", "place": ATTN, "value": [1.0, 2.0, 3.0]})


def test_scale_multiplies(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "scale", "place": ATTN, "factor": -2.0, "loops": [0]})
    torch.testing.assert_close(cache[ATTN][0], clean[ATTN][0] * -2)


def test_clamp_keeps_values_within_bounds(model, batch):
    _, clean = run(model, batch)
    _, cache = run(
        model, batch, {"do": "clamp", "place": ATTN, "low": -0.5, "high": 1.0, "loops": [0]}
    )
    assert torch.equal(cache[ATTN][0], clean[ATTN][0].clamp(-0.5, 1.0))


def test_clamp_to_equal_bounds_puts_a_constant(model, batch):
    share = "recurrence.gate.hook_post"
    _, cache = run(model, batch, {"do": "clamp", "place": share, "low": 0.25, "high": 0.25})
    assert (cache[share] == 0.25).all()


def test_clamp_without_bounds_is_refused():
    assert "clamp needs low, high or both" in refusal({"do": "clamp", "place": ATTN})


def test_freeze_holds_the_values_of_one_loop_through_all_later_ones(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "freeze", "place": ATTN, "after": 1}, n_loops=4)
    torch.testing.assert_close(cache[ATTN][:2], clean[ATTN][:2])
    assert torch.equal(cache[ATTN][1:], cache[ATTN][1].expand(3, -1, -1, -1))


def test_freeze_at_some_positions_leaves_the_others_free(model, batch):
    _, cache = run(model, batch, {"do": "freeze", "place": ATTN, "after": 0, "positions": [1]})
    same = (cache[ATTN][1:] == cache[ATTN][0]).all(-1).all(0)
    assert same.tolist() == [[False, True, False]] * 4


@pytest.mark.parametrize("after", [2, 7, -1])
def test_freeze_after_a_loop_that_has_none_behind_it_is_refused(model, batch, after):
    with pytest.raises(ConfigError, match=f"freeze: after={after} .* 3 loops, numbered 0 to 2"):
        run(model, batch, {"do": "freeze", "place": ATTN, "after": after})


def test_freeze_outside_the_loops_is_refused(model, batch):
    with pytest.raises(ConfigError, match="freeze: hook_embed is outside the loops"):
        run(model, batch, {"do": "freeze", "place": "hook_embed", "after": 0})


def test_freeze_acts_in_the_loops_it_names(model, batch):
    edit = {"do": "freeze", "place": ATTN, "after": 0, "loops": [2]}
    _, cache = run(model, batch, edit, n_loops=4)
    same = [torch.equal(cache[ATTN][loop], cache[ATTN][0]) for loop in range(4)]
    assert same == [True, False, True, False]


@pytest.mark.parametrize("place", PLACES)
def test_patching_a_place_with_its_own_values_changes_nothing(model, batch, place):
    for rows in (batch, batch[:1]):
        patched, _ = run(model, rows, {"do": "patch", "place": place}, names_filter=place)
        clean, _ = run(model, rows, names_filter=place)
        assert torch.equal(patched, clean)


def test_patching_the_last_state_of_another_question_gives_its_answer(model, batch, world):
    other = world.examples(world.split("test_ood"))[0]["question"]
    edit = {"do": "patch", "place": POST, "question": other, "loops": [2]}
    patched, _ = run(model, batch, edit, names_filter=POST)
    own, _ = run(model, world.question(other), names_filter=POST)
    torch.testing.assert_close(patched, own.expand(4, -1, -1))  # batches of 4 and of 1: other sums


def test_patching_from_a_loop_puts_that_loops_values(model, batch):
    _, clean = run(model, batch)
    edit = {"do": "patch", "place": ATTN, "from_loop": 0, "loops": [2]}
    _, cache = run(model, batch, edit)
    torch.testing.assert_close(cache[ATTN][2], clean[ATTN][0])


def test_patching_from_a_position_puts_its_values_where_they_are_wanted(model, batch):
    _, clean = run(model, batch)
    edit = {"do": "patch", "place": POST, "from_position": 1, "positions": [2], "loops": [0]}
    _, cache = run(model, batch, edit)
    torch.testing.assert_close(cache[POST][0, :, 2], clean[POST][0, :, 1])
    torch.testing.assert_close(cache[POST][0, :, :2], clean[POST][0, :, :2])


def test_patching_works_in_more_loops_than_the_model_usually_runs(model, batch):
    edit = {"do": "patch", "place": POST, "loops": [4]}
    patched, _ = run(model, batch, edit, n_loops=6, names_filter=POST)
    assert torch.equal(patched, run(model, batch, n_loops=6, names_filter=POST)[0])


def test_patching_from_a_loop_that_was_not_run_is_refused(model, batch):
    with pytest.raises(ConfigError, match=r"patch: .*hook_attn_out has no loop 9 in its source"):
        run(model, batch, {"do": "patch", "place": ATTN, "from_loop": 9})


@pytest.mark.parametrize("position", [3, -4])
def test_patching_from_a_position_that_is_not_there_is_refused(model, batch, position):
    with pytest.raises(ConfigError, match=f"patch: no position {position} in a source with 3"):
        run(model, batch, {"do": "patch", "place": ATTN, "from_position": position})


def test_patching_all_of_a_question_of_another_length_is_refused(model, batch):
    edit = {"do": "patch", "place": POST, "question": "A1"}
    with pytest.raises(
        ConfigError, match="patch: the source has 1 positions, the question 3; say from_position"
    ):
        run(model, batch, edit)


def test_patching_one_position_of_a_question_of_another_length_works(model, batch):
    edit = {"do": "patch", "place": POST, "question": "A1", "from_position": 0, "positions": [2]}
    _, cache = run(model, batch, edit | {"loops": [0]})
    _, own = model.run_with_cache(model.to_tokens("A1"))
    torch.testing.assert_close(cache[POST][0, :, 2], own[POST][0, :, 0].expand(4, -1))


def test_patching_takes_clean_values_whatever_is_open_on_the_model(model, batch):
    clean, _ = run(model, batch, names_filter=POST)
    with model.hooks([(ATTN, lambda tensor, hook: tensor + 1)]):
        patched, _ = run(model, batch, {"do": "patch", "place": POST}, names_filter=POST)
    assert torch.equal(patched, clean)


def test_skip_leaves_the_state_as_it_was(speaker, batch):
    model = speaker("looped", n_loops=3)
    _, cache = run(model, batch, {"do": "skip", "loops": [1]})
    assert torch.equal(cache[POST][1], cache[PRE][1])
    torch.testing.assert_close(
        run(model, batch, {"do": "skip", "loops": [2]})[0],
        run(model, batch, n_loops=2)[0],
        atol=1e-5,
        rtol=1e-4,
    )


def test_a_skipped_loop_adds_nothing_of_its_loop_embedding(speaker, batch):
    model = speaker("depth_recurrent", n_loops=3)
    _, cache = run(model, batch, {"do": "skip", "loops": [1]})
    torch.testing.assert_close(cache[POST][1], cache[POST][0])


def test_no_loop_of_a_model_that_halts_is_left_out(speaker, batch):
    with pytest.raises(ConfigError, match="skip: a recurrence that halts keeps more than"):
        run(speaker("universal", halting="act"), batch, {"do": "skip", "loops": [1]})


def test_skip_at_some_positions_leaves_the_others_free(speaker, batch):
    model = speaker("looped", n_loops=3)
    _, cache = run(model, batch, {"do": "skip", "loops": [1], "positions": "answer"})
    same = (cache[POST][1] == cache[PRE][1]).all(-1)
    assert same.tolist() == [[False, False, True]] * 4


def test_realign_moves_the_bridges_state_towards_what_it_decodes_to(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "realign", "alpha": 0.25, "loops": [1]})
    state = clean[PRE][1, :, 1]  # bridges are read at position 1
    token = model.decode(state).argmax(-1)
    aim = model.W_E[token]
    aim = aim / (aim.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(cache[PRE][1, :, 1], 0.75 * state + 0.25 * aim, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(cache[PRE][1, :, [0, 2]], clean[PRE][1, :, [0, 2]])


def test_realign_to_the_true_bridge_at_the_states_own_size(model, batch):
    _, clean = run(model, batch)
    edit = {"do": "realign", "alpha": 1.0, "scale": "state", "target": "bridge", "loops": [1]}
    _, cache = run(model, batch, edit)
    before, after = clean[PRE][1, :, 1], cache[PRE][1, :, 1]
    torch.testing.assert_close(after.norm(dim=-1), before.norm(dim=-1), atol=1e-4, rtol=1e-4)
    cosine = F.cosine_similarity(after, model.W_E[batch.bridge[:, 0]])
    torch.testing.assert_close(cosine, torch.ones(4))


def test_realign_by_0_changes_nothing(model, batch):
    realigned, _ = run(model, batch, {"do": "realign", "alpha": 0.0}, names_filter=POST)
    torch.testing.assert_close(realigned, run(model, batch, names_filter=POST)[0])


def test_realign_acts_before_every_loop_but_the_first(model, batch):
    _, cache = run(model, batch, {"do": "realign", "alpha": 1.0, "target": "bridge"}, n_loops=5)
    aim = model.W_E[batch.bridge[:, 0]]
    cosine = F.cosine_similarity(cache[PRE][:, :, 1], aim, dim=-1)
    assert (cosine[1:] > 0.999).all() and not (cosine[0] > 0.999).any()


def test_realign_in_a_single_loop_is_an_error(model, batch):
    with pytest.raises((ConfigError, RuntimeError), match="loop"):
        run(model, batch, {"do": "realign"}, n_loops=1)


def test_realign_to_a_bridge_needs_to_know_where_it_is_read():
    message = refusal({"do": "realign", "target": "bridge", "positions": [1]})
    assert "target='bridge' acts where bridges are read; leave positions out" in message


def test_the_control_realigns_to_another_rows_bridge(model, batch):
    edit = {"do": "realign", "alpha": 1.0, "target": "shuffled", "loops": [1]}
    _, cache = run(model, batch, edit)
    aim = model.W_E[batch.bridge[:, 0].roll(1)]
    cosine = F.cosine_similarity(cache[PRE][1, :, 1], aim, dim=-1)
    torch.testing.assert_close(cosine, torch.ones(4))


@pytest.mark.parametrize(
    "edit",
    [e for e in LOOPING if e["do"] != "mean" and e.get("target") != "shuffled"],
    ids=lambda edit: edit["do"],
)
def test_a_batch_of_four_equals_four_batches_of_one(speaker, batch, edit):
    ordered = edit["do"] in ("repeat", "swap")
    model = speaker("depth_recurrent" if ordered else "discoloop", n_loops=3)
    together, _ = run(model, batch, edit)
    alone = torch.cat([run(model, batch[row : row + 1], edit)[0] for row in range(4)])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


def test_edits_act_in_the_order_given(model, batch):
    add = {"do": "add", "place": ATTN, "value": 1.0, "loops": [0]}
    double = {"do": "scale", "place": ATTN, "factor": 2.0, "loops": [0]}
    _, clean = run(model, batch)
    _, cache = run(model, batch, add, double)
    torch.testing.assert_close(cache[ATTN][0], (clean[ATTN][0] + 1) * 2)


def test_the_pattern_is_edited_by_query(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "zero", "place": PATTERN, "positions": [1], "loops": [0]})
    assert not cache[PATTERN][0, :, :, 1].any()
    torch.testing.assert_close(cache[PATTERN][0, :, :, [0, 2]], clean[PATTERN][0, :, :, [0, 2]])


def test_heads_are_edited_by_position(model, batch):
    place = "blocks.0.attn.hook_z"
    _, cache = run(model, batch, {"do": "zero", "place": place, "positions": "answer"})
    zero = (cache[place] == 0).flatten(3).all(-1)
    assert zero.tolist() == [[[False, False, True]] * 4] * 3


@pytest.fixture
def uneven(build):
    """A model and a batch of two- and three-hop questions."""
    from workbench.tasks import build_task

    chains = {
        f"n_{kind}_{hops}": 3
        for kind in ("train", "test_id", "test_ood")
        for hops in ("two", "three")
    }
    task = build_task("three_hop", n_entities=6, n_relations=4, out_degree=3, **chains)
    return build("looped", d_vocab=task.d_vocab), task.split("test_id")


@pytest.mark.parametrize("positions", ["answer", "bridge", [-1], [1, 2]])
def test_positions_are_each_rows_own(uneven, positions):
    model, batch = uneven
    _, cache = run(model, batch, {"do": "zero", "place": ATTN, "positions": positions})
    wanted = {"answer": batch.read_at[:, None], "bridge": batch.bridge_at}
    if isinstance(positions, list):
        wanted = batch.length[:, None] - 1 if positions == [-1] else torch.tensor([[1, 2]] * 6)
    else:
        wanted = wanted[positions]
    zero = (cache[ATTN][0] == 0).all(-1)
    for row, places in zip(zero, wanted, strict=True):
        assert row.nonzero()[:, 0].tolist() == [p for p in places.tolist() if p >= 0]


def test_the_last_position_is_patched_from_each_rows_own(uneven):
    model, batch = uneven
    edit = {"do": "patch", "place": POST, "from_position": -1, "loops": [0]}
    _, clean = run(model, batch)
    _, cache = run(model, batch, edit)
    own = clean[POST][0, torch.arange(6), batch.read_at]
    torch.testing.assert_close(cache[POST][0], own[:, None].expand(-1, 4, -1))


@pytest.mark.parametrize(
    "edit",
    [
        {"do": "zero", "place": ATTN, "positions": [-1]},
        {"do": "patch", "place": POST, "from_position": -2, "positions": [-1]},
        {"do": "patch", "place": PATTERN, "from_position": 0, "positions": [-1]},
        {"do": "skip", "loops": [0], "positions": "bridge"},
    ],
)
def test_an_edited_row_of_an_uneven_batch_equals_that_row_alone(uneven, edit):
    model, batch = uneven
    together, _ = run(model, batch, edit)
    for row in range(6):
        own = batch[row : row + 1].trimmed()
        alone, _ = run(model, own, edit)
        real = together[row, : own.tokens.shape[1]]
        torch.testing.assert_close(real, alone[0], atol=1e-4, rtol=1e-4)


def test_the_first_loop_matters_to_the_answer(model, batch):
    edited, _ = run(model, batch, {"do": "zero", "place": POST, "loops": [0]})
    assert not torch.allclose(edited, run(model, batch)[0])


@pytest.mark.parametrize("loops", [[3], [-1], [0, 9]])
def test_a_loop_out_of_range_is_an_error(model, batch, loops):
    with pytest.raises(ConfigError, match="which no row has; there are 3 loops, numbered 0 to 2"):
        run(model, batch, {"do": "zero", "place": ATTN, "loops": loops})


@pytest.mark.parametrize("position", [3, -4])
def test_a_position_out_of_range_is_refused(model, batch, position):
    with pytest.raises(ConfigError, match=f"position {position} of a question with 3 positions"):
        run(model, batch, {"do": "zero", "place": ATTN, "positions": [position]})


def test_a_place_without_positions_has_none_to_choose(build):
    task = build_task("reachability", n_train=40, n_valid=10, n_test=8)
    parts = dict(perception="nodes", readout="node_pair", n_ctx=20, d_vocab=27)
    model = build("universal", positional_embedding_type="none", **parts)
    batch = task.batch("test", 4)
    zero = {"do": "zero", "place": "head.hook_in"}
    run(model, batch, zero)
    with pytest.raises(ConfigError, match=r"head.hook_in has no positions to choose from"):
        run(model, batch, zero | {"positions": [0]})
    with pytest.raises(ConfigError, match="these questions have no bridge"):
        run(model, batch, {"do": "zero", "place": ATTN, "positions": "bridge"})


def test_a_place_that_is_not_there_is_answered_with_the_nearest(model, batch):
    with pytest.raises(UnknownHook, match=r"did you mean 'blocks\.0\.hook_attn_out'"):
        run(model, batch, {"do": "zero", "place": "blocks.0.hook_atn_out"})


def test_an_unknown_edit_is_answered_with_the_nearest():
    assert refusal({"do": "zeroo", "place": ATTN}) == ("edit 0 does 'zeroo'; did you mean 'zero'?")


def test_an_unknown_field_is_answered_with_the_nearest():
    edits = {"do": "zero", "place": ATTN}, {"do": "zero", "place": ATTN, "loop": [1]}
    assert refusal(*edits) == "edit 1 (zero) has no field 'loop'; did you mean 'loops'?"


def test_a_missing_field_is_named():
    assert refusal({"do": "scale", "place": ATTN}) == "edit 0 (scale) lacks the field 'factor'"


@pytest.mark.parametrize("data", [{"do": "zero"}, "zero", None])
def test_edits_are_a_list(data):
    with pytest.raises(ConfigError, match="edits are a list"):
        parse_edits(data)


def test_edits_leave_no_hook_behind(model, batch):
    run(model, batch, *[e for e in EVERY_KIND if e["do"] not in ("mix", "skip", "repeat", "swap")])
    assert not any(point._forward_hooks for point in model.hook_points())


def test_patching_rows_of_different_loops_with_their_own_values_changes_nothing(model, batch):
    loops = torch.tensor([3, 1, 2, 3])
    for place in (POST, ATTN):
        clean, _ = run(model, batch, n_loops=loops, names_filter=place)
        edit = {"do": "patch", "place": place}
        patched, _ = run(model, batch, edit, n_loops=loops, names_filter=place)
        assert torch.equal(patched, clean)


def test_a_patch_looks_at_the_present_pass_alone(model, batch, world):
    hooks = edit_hooks(parse_edits([{"do": "patch", "place": "hook_embed"}]), model, batch)
    with model.hooks(hooks):
        first, second = model(**batch.inputs), model(**batch.inputs, n_loops=5)
    assert torch.equal(first, model(**batch.inputs))
    assert torch.equal(second, model(**batch.inputs, n_loops=5))


@pytest.mark.parametrize(
    ("sizes", "parts", "question"),
    [
        (
            dict(name="reachability", n_train=40, n_valid=10, n_test=8),
            dict(perception="nodes", readout="node_pair", n_ctx=20, d_vocab=27),
            "A>B B>C : A C",
        ),
        (
            dict(name="boolean", n_train=20, n_valid=6, n_test=6, max_length=64),
            dict(perception="expression", readout="cls", n_ctx=64, d_vocab=9),
            "!(T&F)|T",
        ),
    ],
    ids=["graph", "expression"],
)
def test_a_question_to_patch_from_is_read_as_its_task_reads_it(build, sizes, parts, question):
    task = build_task(sizes.pop("name"), **sizes)
    model = build("depth_recurrent", positional_embedding_type="none", n_loops=3, **parts)
    model.reader = lambda text: task.question(text).inputs
    asked, other = task.question(question), task.question(question.replace("B", "D"))
    edit = {"do": "patch", "place": POST, "question": question}
    # The source takes the fused path; so do both of these
    _, cache = run(model, other, edit, names_filter=POST)
    _, clean = run(model, asked, names_filter=POST)
    assert torch.equal(cache[POST], clean[POST])


def test_patching_from_another_run_puts_its_states(speaker, recipe, batch, tmp_path):
    from workbench.runs import load_run
    from workbench.training import train

    folder = train(recipe(steps=1), tmp_path / "other", quiet=True)
    model = speaker("discoloop", n_layers=1)
    edit = {"do": "patch", "place": POST, "run": str(folder), "loops": [1]}
    _, cache = run(model, batch, edit)
    _, other = run(load_run(folder).model, batch)
    torch.testing.assert_close(cache[POST][1], other[POST][1], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(cache[POST][0], other[POST][0])


def test_patching_from_a_run_of_another_width_is_refused(build, world, recipe, batch, tmp_path):
    from workbench.training import train

    folder = train(recipe(steps=1), tmp_path / "other", quiet=True)
    wide = build("looped", d_model=32, d_vocab=world.d_vocab)
    edit = {"do": "patch", "place": POST, "run": str(folder)}
    with pytest.raises(ConfigError, match=r"is \[4, 3, 16\] in its source and \[4, 3, 32\] here"):
        run(wide, batch, edit)


def told(model, batch, *edits, n_loops=5):
    """Which row of the loop table each loop was told."""
    _, cache = run(model, batch, *edits, n_loops=n_loops)
    table = model.recurrence.loop_embed.W_loop
    heard = cache["recurrence.hook_loop_embed"][:, 0, 0]
    return [int((table == row).all(1).nonzero()) for row in heard]


def test_a_repeated_loop_pushes_the_later_ones_back(speaker, batch):
    model = speaker("depth_recurrent")
    assert told(model, batch, {"do": "repeat", "loops": [1], "times": 2}) == [0, 1, 1, 1, 2]


def test_swapped_loops_run_in_each_others_place(speaker, batch):
    model = speaker("universal")
    assert told(model, batch, {"do": "swap", "loops": [0, 3]}) == [3, 1, 2, 0, 4]


def test_a_swap_changes_what_the_loops_say(speaker, batch):
    model = speaker("depth_recurrent", n_loops=3)
    swapped, _ = run(model, batch, {"do": "swap", "loops": [0, 1]})
    assert not torch.allclose(swapped, run(model, batch)[0])


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"do": "swap", "loops": [0, 3]}, "no loop 3 to put elsewhere; this pass runs 3 loops"),
        ({"do": "swap", "loops": [-1, 0]}, "no loop -1 to put elsewhere"),
        ({"do": "repeat", "loops": [50]}, "no loop 50 to put elsewhere"),
        ({"do": "repeat", "loops": [2]}, "repeat: loop 2 is the last of this pass"),
    ],
)
def test_a_loop_that_is_not_run_has_no_place_in_the_order(speaker, batch, edit, sentence):
    with pytest.raises(ConfigError, match=sentence):
        run(speaker("universal", n_loops=3), batch, edit)


@pytest.mark.parametrize("edit", [{"do": "repeat", "loops": [0]}, {"do": "swap", "loops": [0, 1]}])
def test_loops_that_are_alike_have_no_order(model, batch, edit):
    with pytest.raises(ConfigError, match="the loops of a discoloop model are alike"):
        run(model, batch, edit)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"do": "repeat"}, "repeat: name the one loop to repeat"),
        ({"do": "repeat", "loops": [0], "times": 0}, "times=0 must be at least 1"),
        ({"do": "swap", "loops": [1]}, "swap: name the two loops to swap"),
        ({"do": "swap", "loops": [0, 1], "positions": [0]}, "leave positions out"),
    ],
)
def test_an_order_that_is_none_is_refused(edit, sentence):
    assert sentence in refusal(edit)
