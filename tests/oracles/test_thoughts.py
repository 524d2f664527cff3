"""Records and edits of every family that thinks, against raw hooks that count calls."""

import pytest
import torch

from workbench.edits import edit_hooks, parse_edits
from workbench.models import FAMILIES
from workbench.models.thoughts.thought import ThoughtModel
from workbench.tasks import build_task
from workbench.tasks.worded.layout import Layout

N = 3  # thoughts
PLACE, RAW, RESID = (
    "recurrence.hook_thought",
    "recurrence.hook_state_pre",
    "blocks.0.hook_resid_post",
)
THINKING = [name for name, cls in FAMILIES.items() if issubclass(cls, ThoughtModel)]
SIZES = dict(n_train=8, n_valid=4, n_test=4, n_nodes=8, hops=[1, 2])
CLOSE = dict(atol=1e-5, rtol=1e-5)


def at(wanted, change):
    """A change of one call alone."""
    return lambda call, tensor: change(tensor) if call == wanted else None


def near(one, other):
    torch.testing.assert_close(one, other, **CLOSE)


@pytest.fixture(scope="module")
def task():
    plain = build_task("prosqa", wording="arrows", lengths="balanced", **SIZES)
    return plain.laid_out(Layout("latent", N))


@pytest.fixture(params=THINKING)
def model(request, build, task):
    latent = task.specials.latent
    n_ctx = task.n_ctx + N
    return build(request.param, d_vocab=task.d_vocab, n_ctx=n_ctx, latent_token=latent)


@pytest.fixture
def rows(task):
    return task.split("test")


def test_record_j_is_what_call_j_of_the_recurrence_was_given_and_made(counted, model, rows):
    with counted(think=model.recurrence, block=model.blocks[0]) as calls:
        _, cache = model.run_with_cache(**rows.inputs)
    made = calls["think"].made
    assert len(made) == N and len(calls["block"].made) == N + 1
    for j in range(N):
        near(cache[PLACE][j], made[j][0])
        near(cache[RAW][j], calls["think"].given[j])


def test_a_sequence_is_its_passes_one_after_another(counted, model, rows):
    one = rows[:1].trimmed()
    with counted(block=model.blocks[0]) as calls:
        _, cache = model.run_with_cache(**one.inputs)
    parts = torch.cat(calls["block"].made, dim=1)
    near(cache[RESID][:, : parts.shape[1]], parts)


CHANGES = {
    "zero": ({}, lambda x: x * 0),
    "mean": ({}, lambda x: x.mean(0, keepdim=True).expand_as(x)),
    "add": ({"value": 0.5}, lambda x: x + 0.5),
    "scale": ({"factor": -2.0}, lambda x: x * -2),
    "clamp": ({"low": -0.1, "high": 0.2}, lambda x: x.clamp(-0.1, 0.2)),
}


@pytest.mark.parametrize("thought", range(N))
@pytest.mark.parametrize("do", CHANGES)
def test_an_edit_of_a_thought_is_what_a_raw_hook_on_that_call_does(
    counted, model, rows, do, thought
):
    fields, change = CHANGES[do]
    edits = parse_edits([{"do": do, "place": RAW, "loops": [thought], **fields}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
        found = model(**rows.inputs)
    with counted(think=(model.recurrence, at(thought, change), None)):
        wanted = model(**rows.inputs)
    near(found, wanted)


@pytest.mark.parametrize("number", range(N + 1))
@pytest.mark.parametrize("do", ["zero", "add", "scale", "clamp"])
def test_an_edit_of_a_pass_is_what_a_raw_hook_on_that_call_does(counted, model, rows, do, number):
    fields, change = CHANGES[do]
    edits = parse_edits([{"do": do, "place": RESID, "loops": [number], **fields}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
        found = model(**rows.inputs)
    with counted(block=(model.blocks[0], None, at(number, change))):
        wanted = model(**rows.inputs)
    near(found, wanted)


def test_mix_takes_from_the_thought_before_as_that_was_fed(counted, model, rows):
    edits = parse_edits([{"do": "mix", "alpha": 0.25}])
    recurrence, fed, written = model.recurrence, [], {}

    def change(call, made):
        thought = made[0] if not call else 0.75 * made[0] + 0.25 * fed[-1]
        fed.append(thought)
        if not written:
            return thought, made[1]
        # The stream takes up the thought as it was fed
        share, sum_of = written["write"].made[-1], written["stream"].given[-1]
        return thought, recurrence.ln_stream.forward(sum_of + share * (thought - made[0]))

    with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
        found = model(**rows.inputs)
    has_stream = hasattr(recurrence, "ln_stream")
    parts = {"write": recurrence.write, "stream": recurrence.ln_stream} if has_stream else {}
    with counted(**parts) as calls, counted(think=(recurrence, None, change)):
        written.update(calls)
        wanted = model(**rows.inputs)
    near(found, wanted)


@pytest.mark.parametrize("source", range(N))
def test_a_patch_from_another_thought_puts_what_that_call_was_given(counted, model, rows, source):
    with counted(think=model.recurrence) as plain:
        model(**rows.inputs)
    there = plain["think"].given[source]
    edits = parse_edits([{"do": "patch", "place": RAW, "from_loop": source, "loops": [1]}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
        found = model(**rows.inputs)
    with counted(think=(model.recurrence, at(1, lambda x: there), None)):
        wanted = model(**rows.inputs)
    near(found, wanted)


def test_freeze_feeds_an_earlier_thought_again(counted, model, rows):
    edits = parse_edits([{"do": "freeze", "place": RAW, "after": 0}])
    given = []

    def change(call, state):
        given.append(state)
        return given[0]

    with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
        found = model(**rows.inputs)
    with counted(think=(model.recurrence, change, None)):
        wanted = model(**rows.inputs)
    near(found, wanted)
