"""Edits of models that think: by thought between passes, by pass along the sequence."""

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

from workbench.edits import EDITS as REGISTERED
from workbench.edits import edit_hooks, parse_edits
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch

T = 10  # the token in whose places thoughts stand
THOUGHT, STREAM, RAW = (f"recurrence.hook_{name}" for name in ("thought", "stream", "state_pre"))
WRITE = "recurrence.write.hook_post"
ATTN, Z = "blocks.0.hook_attn_out", "blocks.1.attn.hook_z"
PATTERN, SCORES = "blocks.0.attn.hook_pattern", "blocks.0.attn.hook_attn_scores"
SEQUENCE = [ATTN, Z, PATTERN, SCORES, "blocks.0.mlp.hook_post", "hook_embed"]
SEQUENCE += ["blocks.1.hook_resid_post", "blocks.0.attn.hook_k", "ln_final.hook_normalized"]
OURS = REGISTERED.homes  # whose edits are listed here one by one; those of plugins follow
ROWS = [  # three thoughts together, one, none, two apart
    [1, 2, T, T, T, 3, 4],
    [5, 6, 7, T, 8],
    [1, 3, 5, 7, 9, 2],
    [4, T, 6, T, 5, 8, 9, 1],
]
EDITS = [
    {"do": "zero", "place": ATTN},
    {"do": "zero", "place": "hook_embed", "loops": [1]},
    {"do": "zero", "place": ATTN, "loops": [0], "positions": [0]},
    {"do": "add", "place": "blocks.1.hook_resid_post", "value": 0.5, "positions": [3, -1]},
    {"do": "add", "place": ATTN, "value": 0.5, "loops": [0, 3]},
    {"do": "add", "place": "blocks.0.attn.hook_k", "value": 0.5, "loops": [1]},
    {"do": "scale", "place": Z, "factor": -2.0, "positions": [4]},
    {"do": "clamp", "place": "blocks.0.mlp.hook_post", "high": 0.1, "positions": "answer"},
    {"do": "scale", "place": PATTERN, "factor": 0.5, "positions": [2]},
    {"do": "add", "place": PATTERN, "value": 0.1},
    {"do": "zero", "place": SCORES, "loops": [1, 2]},
    {"do": "mean", "place": ATTN},
    {"do": "mean", "place": Z, "loops": [0]},
    {"do": "mean", "place": "blocks.1.hook_resid_post", "positions": [1, -2]},
    {"do": "patch", "place": ATTN, "from_position": 0, "positions": [3]},
    {"do": "patch", "place": PATTERN, "from_position": -2, "positions": [-1]},
    {"do": "patch", "place": Z, "from_row": 0, "from_position": 1, "loops": [0]},
    {"do": "zero", "place": THOUGHT, "loops": [1]},
    {"do": "mean", "place": STREAM},
    {"do": "clamp", "place": "recurrence.forget.hook_post", "low": 1.0, "loops": [0, 2]},
    {"do": "add", "place": RAW, "value": [0.1] * 16},
    {"do": "freeze", "place": STREAM, "after": 0},
    {"do": "patch", "place": THOUGHT, "from_loop": 0, "loops": [1]},
    {"do": "patch", "place": THOUGHT, "from_row": "other", "loops": [0, 1]},
    {"do": "mix", "alpha": 0.25},
]
EDITS += [{"do": name} | REGISTERED.example(name) for name in REGISTERED if name not in OURS]


def name_of(edit):
    extras = [f"{k}={v}" for k, v in edit.items() if k not in ("do", "place", "value")]
    return " ".join([edit["do"], edit.get("place", ""), *extras])


@dataclass(frozen=True, eq=False)
class Padded(Batch):
    """Rows with padding on either side."""

    mask: torch.Tensor

    @property
    def inputs(self):
        return {"tokens": self.tokens, "attention_mask": self.mask}


def laid_out(rows, side="right", spare=0):
    """Rows as a batch, padded to the longest and `spare` more."""
    width = max(map(len, rows)) + spare
    tokens = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, words in enumerate(rows):
        start = {"right": 0, "left": width - len(words), "both": (width - len(words)) // 2}[side]
        tokens[row, start : start + len(words)] = torch.tensor(words)
        mask[row, start : start + len(words)] = 1
    columns = torch.arange(width)
    none = torch.full((len(rows), 0), -1)
    return Padded(
        tokens=tokens,
        length=mask.sum(1),
        read_at=torch.where(mask.bool(), columns, -1).max(1).values,
        answer=torch.ones(len(rows), dtype=torch.long),
        difficulty=torch.ones(len(rows), dtype=torch.long),
        bridge=none,
        bridge_at=none,
        mask=mask,
    )


@pytest.fixture(params=["coconut", "agclr"])
def model(request, thinker):
    return thinker(request.param)


@pytest.fixture
def agclr(thinker):
    return thinker("agclr")


@pytest.fixture(params=["right", "left", "both"])
def batch(request):
    return laid_out(ROWS, request.param, spare=2)


def run(model, batch, *edits, **options):
    """Logits and cache under edits given as plain data."""
    hooks = edit_hooks(parse_edits(list(edits)), model, batch)
    with torch.no_grad(), model.hooks(hooks):
        return model.run_with_cache(**batch.inputs, **options)


def spoken(model, batch, *edits, n_new=3, **options):
    """Tokens said under edits, and what the last layer showed of the last of them."""
    seen = []
    hooks = edit_hooks(parse_edits(list(edits)), model, batch)

    def see(tensor, hook):
        seen.append(tensor[:, -1:].clone())

    see.by_pass = True
    with model.hooks([*hooks, ("blocks.1.hook_resid_post", see)]):
        return model.generate(**batch.inputs, max_new_tokens=n_new, **options), seen[-1]


def is_for(edit, model):
    return edit.get("place", THOUGHT) in model.hook_dict


def real_of(tensor, batch):
    return tensor[batch.mask.bool()]


@pytest.mark.parametrize("edit", EDITS, ids=name_of)
def test_an_edit_comes_to_the_same_with_and_without_the_cache(thinker, batch, edit):
    for family in ("coconut", "agclr"):
        model = thinker(family)
        if not is_for(edit, model):
            continue
        ours, cache = run(model, batch, edit)
        slow, whole = run(model, batch, edit, recompute=True)
        clean, _ = run(model, batch)
        close = dict(atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(real_of(ours, batch), real_of(slow, batch), **close)
        torch.testing.assert_close(cache[THOUGHT], whole[THOUGHT], **close)
        assert not torch.allclose(real_of(ours, batch), real_of(clean, batch))


@pytest.mark.parametrize("edit", EDITS, ids=name_of)
def test_an_edit_leaves_the_cache_of_keys_and_values_in_use(agclr, batch, edit):
    hooks = edit_hooks(parse_edits([edit]), agclr, batch)
    with agclr.hooks(hooks, must_fire=False):
        assert not agclr.wants_whole


@pytest.mark.parametrize("edit", EDITS, ids=name_of)
def test_an_edit_comes_to_the_same_while_generating(agclr, batch, edit):
    ours, last = spoken(agclr, batch, edit)
    slow, whole = spoken(agclr, batch, edit, recompute=True)
    assert torch.equal(ours, slow)
    torch.testing.assert_close(last, whole, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "edit", [e for e in EDITS if e["do"] != "mean" and "from_row" not in e], ids=name_of
)
def test_an_edited_row_equals_that_row_alone(agclr, batch, edit):
    together, _ = run(agclr, batch, edit)
    for row, words in enumerate(ROWS):
        alone = laid_out([words])
        thoughts, passes = words.count(T), words.count(T) + 1
        loops = edit.get("loops", [0])
        comes = thoughts if edit.get("place", THOUGHT).startswith("recurrence.") else passes
        least = 2 if edit["do"] in ("freeze", "mix") else 1
        if edit.get("from_position", 0) >= len(words) or comes < least:
            continue
        fitting = [loop for loop in loops if loop < comes]
        clean = not fitting or edit.get("from_loop", 0) >= thoughts > 0
        own_edit = edit | ({"loops": fitting} if "loops" in edit else {})
        own, _ = run(agclr, alone, *([] if clean else [own_edit]))
        torch.testing.assert_close(
            together[row][batch.mask[row].bool()], own[0], atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize("place", [*SEQUENCE, THOUGHT, RAW, STREAM, WRITE])
@pytest.mark.parametrize("recompute", [False, True])
def test_patching_a_place_with_its_own_values_changes_nothing(agclr, batch, place, recompute):
    for rows in (batch, batch[:1]):
        options = dict(names_filter=place, recompute=recompute)
        patched, _ = run(agclr, rows, {"do": "patch", "place": place}, **options)
        clean, _ = run(agclr, rows, **options)
        assert torch.equal(real_of(patched, rows), real_of(clean, rows))


def test_self_patching_is_exact_under_a_plain_hook_as_well(agclr, batch):
    plain = ("blocks.0.hook_mlp_out", lambda tensor, hook: tensor)
    with agclr.hooks([plain]):
        clean, _ = run(agclr, batch, names_filter=ATTN)
        patched, _ = run(agclr, batch, {"do": "patch", "place": ATTN}, names_filter=ATTN)
    assert torch.equal(real_of(patched, batch), real_of(clean, batch))


def test_zero_acts_on_the_thoughts_it_names(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "zero", "place": THOUGHT, "loops": [1]})
    assert not cache[THOUGHT][1, [0, 3]].any()
    assert torch.equal(cache[THOUGHT][0], clean[THOUGHT][0])
    assert not torch.allclose(cache[THOUGHT][2, 0], clean[THOUGHT][2, 0])


def test_loops_of_the_sequence_are_the_passes_of_each_row(model, batch):
    _, cache = run(model, batch, {"do": "zero", "place": ATTN, "loops": [1]})
    zero = (cache[ATTN] == 0).all(-1) & batch.mask.bool()
    wanted = [[2], [3, 4], [], [1, 2]]  # of each row alone, counted from its own beginning
    for row, positions in enumerate(wanted):
        start = int(batch.mask[row].argmax())
        assert zero[row].nonzero()[:, 0].tolist() == [start + p for p in positions]


def test_positions_are_each_rows_own_on_either_side_of_padding(model, batch):
    _, cache = run(model, batch, {"do": "zero", "place": ATTN, "positions": [1, -1, 6]})
    zero = (cache[ATTN] == 0).all(-1) & batch.mask.bool()
    for row, words in enumerate(ROWS):
        start = int(batch.mask[row].argmax())
        wanted = sorted({1, len(words) - 1} | ({6} if len(words) > 6 else set()))
        assert zero[row].nonzero()[:, 0].tolist() == [start + p for p in wanted]


def test_the_mean_counts_only_rows_that_have_the_thought(model, batch):
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "mean", "place": THOUGHT, "loops": [0]})
    wanted = clean[THOUGHT][0, [0, 1, 3]].mean(0)
    torch.testing.assert_close(cache[THOUGHT][0, [0, 1, 3]], wanted.expand(3, -1))
    _, cache = run(model, batch, {"do": "mean", "place": THOUGHT, "loops": [2]})
    torch.testing.assert_close(cache[THOUGHT][2, 0], clean[THOUGHT][2, 0])


def test_the_mean_of_a_sequence_is_taken_pass_by_pass_without_filling(model):
    batch = laid_out(ROWS)
    _, clean = run(model, batch, names_filter="hook_embed")
    _, cache = run(model, batch, {"do": "mean", "place": "hook_embed", "loops": [0]})
    words = clean["hook_embed"]
    # First passes hold two, three, no thought and one: 2, 3, 3 and 1 words. The third of them is
    # there in the second row and in the one without thoughts
    third = (words[1, 2] + words[2, 2]) / 2
    torch.testing.assert_close(cache["hook_embed"][[1, 2], 2], third.expand(2, -1))
    torch.testing.assert_close(cache["hook_embed"][:, 0], words[:, 0].mean(0).expand(4, -1))


def test_the_mean_over_rows_of_a_looped_model_leaves_padding_out(build):
    model = build("looped", n_ctx=16)
    batch = laid_out([[1, 2, 3], [4, 5], [6, 7, 8]])
    _, clean = run(model, batch)
    _, cache = run(model, batch, {"do": "mean", "place": ATTN, "loops": [0]})
    wanted = clean[ATTN][0, [0, 2], 2].mean(0)
    torch.testing.assert_close(cache[ATTN][0, [0, 2], 2], wanted.expand(2, -1))


def test_a_mean_over_keys_is_refused(model, batch):
    with pytest.raises(ConfigError, match=r"keys in places of their own, so .*hook_pattern has no"):
        run(model, batch, {"do": "mean", "place": PATTERN})
    with pytest.raises(ConfigError, match="keys so far for its last axis; add a number"):
        run(model, batch, {"do": "add", "place": PATTERN, "value": [1.0, 2.0]})


def test_scores_of_what_is_out_of_sight_stay_so(model, batch, build):
    edit = {"do": "scale", "place": SCORES, "factor": 0.0}
    _, cache = run(model, batch, edit)
    assert cache[PATTERN].isfinite().all()
    real = (cache[PATTERN].sum(-1) - 1).abs()[batch.mask.bool()[:, None].expand(-1, 2, -1)]
    assert (real < 1e-5).all()
    looped = build("looped", n_ctx=16)
    logits, cache = run(looped, laid_out([[1, 2, 3]]), edit)
    assert logits.isfinite().all()
    torch.testing.assert_close(cache[PATTERN][0, 0, 0, 1], torch.tensor([0.5, 0.5, 0.0]))


def test_freezing_the_stream_holds_it(agclr):
    batch = laid_out(ROWS)
    _, clean = run(agclr, batch)
    _, cache = run(agclr, batch, {"do": "freeze", "place": STREAM, "after": 0})
    assert torch.equal(cache[STREAM], clean[STREAM][:1].expand(3, -1, -1))


def test_holding_the_stream_is_not_what_a_shut_write_gate_does(agclr):
    # With d_model 16 and LN's gain 2, bias 1 on every channel, a stream c that nothing is written
    # to becomes LN(c)·2 + 1 again and again; held, it stays what it was.
    with torch.no_grad():
        agclr.recurrence.ln_stream.w.fill_(2.0)
        agclr.recurrence.ln_stream.b.fill_(1.0)
    batch = laid_out([[1, 2, T, T, T, 3]])
    _, shut = run(agclr, batch, {"do": "zero", "place": WRITE, "loops": [1, 2]})
    _, held = run(agclr, batch, {"do": "freeze", "place": STREAM, "after": 0})
    first = shut[STREAM][0]
    assert torch.equal(held[STREAM][0], first)
    for later in (1, 2):
        before = shut[STREAM][later - 1]
        torch.testing.assert_close(shut[STREAM][later], F.layer_norm(before, (16,)) * 2 + 1)
        assert torch.equal(held[STREAM][later], first)


@pytest.mark.parametrize("after", [2, -1])
def test_freezing_after_the_last_thought_is_refused(agclr, after):
    with pytest.raises(ConfigError, match=f"freeze: after={after} leaves no loop .* 3 loops"):
        run(agclr, laid_out(ROWS), {"do": "freeze", "place": STREAM, "after": after})


@pytest.mark.parametrize(
    "edit", [{"do": "freeze", "place": STREAM, "after": 1}, {"do": "mix"}], ids=name_of
)
def test_what_acts_on_later_thoughts_lets_questions_be_that_are_asked_with_fewer(agclr, edit):
    hooks = edit_hooks(parse_edits([edit]), agclr, laid_out(ROWS))
    fewer = laid_out([[1, 2, T, 3, 4]])
    with torch.no_grad(), agclr.hooks(hooks):
        edited = agclr(**fewer.inputs)
    assert torch.equal(edited, agclr(**fewer.inputs))


def test_freezing_a_place_of_the_sequence_is_refused(model, batch):
    with pytest.raises(
        ConfigError, match=r"runs each position once, so blocks.0.hook_attn_out has"
    ):
        run(model, batch, {"do": "freeze", "place": ATTN, "after": 0})


@pytest.mark.parametrize(
    "edit",
    [
        {"do": "zero", "place": THOUGHT},
        {"do": "freeze", "place": THOUGHT, "after": 0},
        {"do": "patch", "place": THOUGHT},
    ],
    ids=name_of,
)
def test_a_place_between_passes_has_no_positions(model, batch, edit):
    with pytest.raises(ConfigError, match="hook_thought has no positions to choose from"):
        run(model, batch, edit | {"positions": [0]})


@pytest.mark.parametrize("loops", [[4], [-1], [0, 9]])
def test_a_pass_that_is_not_run_is_an_error(model, batch, loops):
    with pytest.raises(ConfigError, match=r"names pass .* there are 4 passes, numbered 0 to 3"):
        run(model, batch, {"do": "zero", "place": ATTN, "loops": loops})


@pytest.mark.parametrize("loops", [[3], [-1], [0, 9]])
def test_a_thought_that_is_not_thought_is_an_error(model, batch, loops):
    sentence = "names thought .* there are 3 thoughts, numbered 0 to 2"
    with pytest.raises(ConfigError, match=sentence):
        run(model, batch, {"do": "zero", "place": THOUGHT, "loops": loops})


def test_tokens_that_are_appended_are_edited_where_no_positions_are_named(agclr):
    seen = []

    def see(tensor, hook):
        seen.append((tensor[:, -1] == 0).all(-1))

    see.by_pass = True
    rows = laid_out(ROWS, "left")
    for positions, edited in ((None, True), ([-1], False)):
        seen.clear()
        (edit,) = parse_edits([{"do": "zero", "place": ATTN, "positions": positions}])
        with agclr.hooks([*edit_hooks([edit], agclr, rows), (ATTN, see)]):
            agclr.generate(**rows.inputs, max_new_tokens=3)
        assert all(bool((zero == edited).all()) for zero in seen[-2:])


# -- patching


@pytest.fixture
def asker(agclr):
    """A model that reads words as numbers, * as a thought."""
    agclr.reader = lambda text: {
        "tokens": torch.tensor([[T if word == "*" else int(word) for word in text.split()]])
    }
    return agclr


def test_a_thought_of_another_question_is_put_in_every_row(asker):
    batch = laid_out(ROWS)
    _, other = run(asker, laid_out([[9, 8, T, T, 7]]))
    edit = {"do": "patch", "place": THOUGHT, "question": "9 8 * * 7", "loops": [1]}
    _, cache = run(asker, batch, edit)
    torch.testing.assert_close(cache[THOUGHT][1, [0, 3]], other[THOUGHT][1].expand(2, -1))


def test_a_position_of_another_question_is_put_where_it_is_wanted(asker):
    batch = laid_out(ROWS)
    _, other = run(asker, laid_out([[9, 8, T, T, 7]]))
    edit = {"do": "patch", "place": ATTN, "question": "9 8 * * 7", "from_position": -1}
    _, cache = run(asker, batch, edit | {"positions": [2]})
    torch.testing.assert_close(cache[ATTN][:, 2], other[ATTN][:, 4].expand(4, -1))


def test_all_thoughts_of_another_question_give_what_they_lead_to(asker):
    # The same words after the same number of thoughts, so that the rest of the sequence is alike
    mine, other = laid_out([[1, 2, T, T, 3, 4]]), laid_out([[1, 2, T, T, 3, 4]])
    edit = {"do": "patch", "place": THOUGHT, "question": "1 2 * * 3 4"}
    torch.testing.assert_close(run(asker, mine, edit)[0], run(asker, other)[0])


def test_a_question_without_thoughts_has_none_to_give(asker):
    edit = {"do": "patch", "place": THOUGHT, "question": "1 2 3"}
    with pytest.raises(ConfigError, match="patch: the source has no thoughts, so no recurrence"):
        run(asker, laid_out(ROWS), edit)


def test_a_question_with_fewer_thoughts_is_refused(asker):
    edit = {"do": "patch", "place": THOUGHT, "question": "1 2 * 3"}
    with pytest.raises(ConfigError, match=r"patch: .*hook_thought has no loop 1 in its source"):
        run(asker, laid_out(ROWS), edit)


def test_a_question_of_another_length_needs_a_position(asker):
    with pytest.raises(ConfigError, match="the source has 4 positions, the question 8; say from"):
        run(asker, laid_out(ROWS), {"do": "patch", "place": ATTN, "question": "1 2 * 3"})
    pattern = {"do": "patch", "place": PATTERN, "question": "1 2 * 3", "from_position": 1}
    with pytest.raises(ConfigError, match=r"is \[2, 1, 4\] in a row of its source"):
        run(asker, laid_out(ROWS), pattern | {"positions": [1]})


def test_thoughts_are_swapped_between_the_rows_that_have_them(model, batch):
    _, clean = run(model, batch)
    edit = {"do": "patch", "place": THOUGHT, "from_row": "other"}
    _, cache = run(model, batch, edit | {"loops": [0]})
    # Rows 0, 1 and 3 think; each takes of the one before it, the first of the last
    torch.testing.assert_close(cache[THOUGHT][0, [0, 1, 3]], clean[THOUGHT][0, [3, 0, 1]])
    _, cache = run(model, batch, edit | {"loops": [1]})
    torch.testing.assert_close(cache[THOUGHT][1, [0, 3]], clean[THOUGHT][1, [3, 0]])


def test_a_thought_that_no_other_row_has_is_not_swapped(model, batch):
    edit = {"do": "patch", "place": THOUGHT, "from_row": "other", "loops": [2]}
    with pytest.raises(ConfigError, match="of another row that has loop 2, and there is none"):
        run(model, batch, edit)


def test_a_thought_of_one_row_is_put_in_all(model, batch):
    _, clean = run(model, batch)
    edit = {"do": "patch", "place": THOUGHT, "from_row": 3, "loops": [1]}
    _, cache = run(model, batch, edit)
    torch.testing.assert_close(cache[THOUGHT][1, [0, 3]], clean[THOUGHT][1, [3, 3]])


@pytest.mark.parametrize("row", [2, 4, -1])
def test_a_row_without_that_thought_is_refused(model, batch, row):
    edit = {"do": "patch", "place": THOUGHT, "from_row": row, "loops": [0]}
    with pytest.raises(ConfigError, match=f"row {row} is no row that has loop 0 of the 4"):
        run(model, batch, edit)


def test_whole_rows_of_other_lengths_are_not_swapped(model):
    edit = {"do": "patch", "place": ATTN, "from_row": "other"}
    with pytest.raises(ConfigError, match="the rows have lengths of their own; say from_position"):
        run(model, laid_out(ROWS), edit)


def test_rows_of_a_looped_model_are_swapped_too(build):
    model = build("looped", n_ctx=16)
    batch = laid_out([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    place = "recurrence.hook_state_post"
    clean, _ = run(model, batch, names_filter=place)
    edit = {"do": "patch", "place": place, "from_row": "other"}
    patched, _ = run(model, batch, edit, names_filter=place)
    assert torch.equal(patched, clean[[2, 0, 1]])
    patched, _ = run(model, batch, edit | {"from_row": 1}, names_filter=place)
    assert torch.equal(patched, clean[[1, 1, 1]])
    with pytest.raises(ConfigError, match="row 3 is no row that has loop 0 of the 3 in the batch"):
        run(model, batch, edit | {"from_row": 3})


def test_a_question_has_no_rows():
    with pytest.raises(ConfigError, match="a question is one row; say question or from_row"):
        parse_edits([{"do": "patch", "place": ATTN, "question": "1", "from_row": 0}])


def test_loops_and_positions_are_taken_where_there_are_any(model, batch):
    with pytest.raises(ConfigError, match=r"once, so .*hook_attn_out has no loops to take from"):
        run(model, batch, {"do": "patch", "place": ATTN, "from_loop": 0})
    with pytest.raises(ConfigError, match="hook_thought has no positions to take from"):
        run(model, batch, {"do": "patch", "place": THOUGHT, "from_position": 0})


def test_another_run_thinks_about_the_same_rows(agclr, thinker, monkeypatch):
    other = thinker("agclr")
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 0.1
    _runs(monkeypatch, other)
    batch = laid_out(ROWS)
    _, wanted = run(other, batch)
    edit = {"do": "patch", "place": STREAM, "run": "other", "loops": [0]}
    _, cache = run(agclr, batch, edit)
    torch.testing.assert_close(cache[STREAM][0, [0, 1, 3]], wanted[STREAM][0, [0, 1, 3]])


def test_a_run_of_the_other_kind_is_refused(agclr, build, monkeypatch):
    _runs(monkeypatch, build("looped", n_ctx=16))
    with pytest.raises(ConfigError, match=r"'other' is of family looped, .* the other loops"):
        run(agclr, laid_out(ROWS), {"do": "patch", "place": ATTN, "run": "other"})


def _runs(monkeypatch, model):
    """Let every name be that of a run with this model."""
    from types import SimpleNamespace

    import workbench.runs

    monkeypatch.setattr(workbench.runs, "load_run", lambda *_: SimpleNamespace(model=model))


# -- mix, and edits of the other kind


def test_mix_adds_a_share_of_the_thought_before_as_it_was_fed(thinker):
    model = thinker("coconut")
    _, cache = run(model, laid_out(ROWS), {"do": "mix", "alpha": 0.25})
    raw, fed = cache[RAW], cache[THOUGHT]
    assert torch.equal(fed[0], raw[0])
    torch.testing.assert_close(fed[1, [0, 3]], 0.75 * raw[1, [0, 3]] + 0.25 * fed[0, [0, 3]])
    torch.testing.assert_close(fed[2, 0], 0.75 * raw[2, 0] + 0.25 * fed[1, 0])


def test_mix_acts_on_the_thoughts_it_names(thinker):
    _, cache = run(thinker("coconut"), laid_out(ROWS), {"do": "mix", "loops": [2]})
    raw, fed = cache[RAW], cache[THOUGHT]
    assert torch.equal(fed[:2], raw[:2])
    torch.testing.assert_close(fed[2, 0], 0.5 * raw[2, 0] + 0.5 * fed[1, 0])


def test_mix_of_nothing_changes_nothing(model, batch):
    mixed, _ = run(model, batch, {"do": "mix", "alpha": 0.0}, names_filter=THOUGHT)
    assert torch.equal(mixed, run(model, batch, names_filter=THOUGHT)[0])


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"do": "mix", "positions": [0]}, "mix: a thought has no positions"),
        ({"do": "mix", "loops": [0, 1]}, "mix: thought 0 has none before it"),
    ],
)
def test_a_mix_that_is_none_is_refused(edit, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse_edits([edit])


def test_a_mix_without_two_thoughts_is_refused(model):
    with pytest.raises(ConfigError, match="mix acts between two thoughts; these rows have one"):
        run(model, laid_out([[1, 2, T, 3]]), {"do": "mix"})
    with pytest.raises(ConfigError, match="mix: there is no thought 3; these rows have 3"):
        run(model, laid_out(ROWS), {"do": "mix", "loops": [3]})


@pytest.mark.parametrize(
    "edit",
    [
        {"do": "realign", "positions": None},
        {"do": "skip", "loops": [1]},
        {"do": "repeat", "loops": [0]},
        {"do": "swap", "loops": [0, 1]},
    ],
    ids=name_of,
)
def test_edits_of_loops_are_refused_by_models_that_think(model, batch, edit):
    sentence = f"{edit['do']} is for models that loop; those of family {model.cfg.family} think"
    with pytest.raises(ConfigError, match=sentence):
        run(model, batch, edit)


def test_mix_is_refused_by_models_that_loop(build):
    with pytest.raises(ConfigError, match=r"the edit mix is for models that think; .* looped loop"):
        run(build("looped"), laid_out([[1, 2, 3]]), {"do": "mix"})
