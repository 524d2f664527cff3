"""Every edit says what it touched, and one that touches nothing is an error."""

import pytest
import torch

from workbench.edits import Watch, edit_hooks, parse_edits
from workbench.settings.config import ConfigError

ATTN = "blocks.0.hook_attn_out"
THOUGHT = "recurrence.hook_thought"


@pytest.fixture
def batch(world):
    return world.batch("test_ood", 5)


def touched(model, batch, *edits, **options):
    """What the edits touched in one forward pass."""
    watch = Watch(parse_edits(list(edits)))
    with torch.no_grad(), model.hooks(watch.hooks(model, batch)):
        model(**batch.inputs, **options)
    return watch.finish()


@pytest.mark.parametrize(
    ("edit", "loops", "positions"),
    [
        ({"do": "zero", "place": ATTN}, [0, 1, 2], [0, 1, 2]),
        ({"do": "zero", "place": ATTN, "loops": [1], "positions": "answer"}, [1], [2]),
        ({"do": "scale", "place": ATTN, "factor": 1.0, "positions": [0, -1]}, [0, 1, 2], [0, 2]),
        ({"do": "zero", "place": "hook_embed"}, [], [0, 1, 2]),
        ({"do": "freeze", "place": ATTN, "after": 0}, [1, 2], [0, 1, 2]),
        ({"do": "realign", "alpha": 0.0}, [1, 2], [1]),
        ({"do": "patch", "place": ATTN, "loops": [0, 2]}, [0, 2], [0, 1, 2]),
        ({"do": "skip", "loops": [1], "positions": [2]}, [1], [2]),
        ({"do": "add", "place": "recurrence.hook_decoded", "value": 0.0}, [0, 1], [0, 1, 2]),
        ({"do": "zero", "place": "blocks.0.attn.hook_pattern"}, [0, 1, 2], [0, 1, 2]),
    ],
)
def test_rows_loops_and_positions_are_those_addressed(speaker, batch, edit, loops, positions):
    found = touched(speaker(), batch, edit, n_loops=3)
    assert found == [{"rows": 5, "loops": loops, "positions": positions}]


def test_an_order_touches_the_loops_that_are_told_another_number(build, batch):
    model = build("universal", d_vocab=int(batch.tokens.max()) + 1, max_loops=4)
    assert touched(model, batch, {"do": "swap", "loops": [0, 2]}, n_loops=3)[0]["loops"] == [0, 2]
    assert touched(model, batch, {"do": "repeat", "loops": [0]}, n_loops=3)[0]["loops"] == [1, 2]


def test_rows_without_such_a_loop_or_position_are_not_touched(speaker, batch):
    loops = torch.tensor([1, 2, 3, 3, 1])
    found = touched(speaker(), batch, {"do": "zero", "place": ATTN, "loops": [2]}, n_loops=loops)
    assert found == [{"rows": 2, "loops": [2], "positions": [0, 1, 2]}]


def test_touched_is_summed_over_batches(speaker, batch):
    model = speaker()
    watch = Watch(parse_edits([{"do": "zero", "place": ATTN, "loops": [0]}]))
    for rows in (batch[:2], batch[2:]):
        with torch.no_grad(), model.hooks(watch.hooks(model, rows)):
            model(**rows.inputs)
    assert watch.finish()[0]["rows"] == 5


@pytest.mark.parametrize("edit", [{"loops": [0, 9]}, {"loops": [9]}, {"loops": [-1]}])
def test_every_loop_named_must_come(speaker, batch, edit):
    with pytest.raises(ConfigError, match=r"edit 0 \(zero at .*\) names loop .* 3 loops"):
        touched(speaker(), batch, {"do": "zero", "place": ATTN} | edit, n_loops=3)


def test_a_loop_that_a_place_between_loops_has_not_is_an_error(speaker, batch):
    edit = {"do": "zero", "place": "recurrence.hook_decoded", "loops": [0, 2]}
    with pytest.raises(ConfigError, match=r"names loop 2, .* 2 loops, numbered 0 to 1"):
        touched(speaker(), batch, edit, n_loops=3)


@pytest.mark.parametrize("field", ["loops", "positions"])
def test_an_empty_list_is_refused(field):
    with pytest.raises(
        ConfigError, match=rf"edit 1 \(\w+\): {field} is empty, so that nothing is edited"
    ):
        parse_edits([{"do": "zero", "place": ATTN}, {"do": "zero", "place": ATTN, field: []}])


def test_a_bridge_that_no_row_has_touches_nothing(speaker, world):
    facts = world.batch("train_atom", 4)
    edit = {"do": "zero", "place": ATTN, "positions": "bridge"}
    with pytest.raises(ConfigError, match="bridge"):
        touched(speaker(), facts, edit)


def test_a_position_that_every_row_is_too_short_for_is_an_error(thinker):
    from tests.workbench.test_thought_edits import laid_out  # rows of any length

    model = thinker("coconut")
    rows = laid_out([[1, 2, 10, 3], [4, 10, 5]], spare=3)
    edit = {"do": "zero", "place": ATTN, "positions": [1, 5]}
    with pytest.raises(ConfigError, match="names position 5, which no row has"):
        touched(model, rows, edit)
    found = touched(model, rows, {"do": "zero", "place": ATTN, "positions": [3]})
    assert found == [{"rows": 1, "loops": [1], "positions": [3]}]


def test_thoughts_and_passes_are_counted(thinker):
    from tests.workbench.test_thought_edits import laid_out

    model = thinker("agclr")
    rows = laid_out([[1, 10, 10, 2], [3, 10, 4, 5]])
    edits = [
        {"do": "zero", "place": THOUGHT},
        {"do": "zero", "place": THOUGHT, "loops": [1]},
        {"do": "zero", "place": ATTN, "loops": [2]},
        {"do": "mix"},
    ]
    assert touched(model, rows, *edits) == [
        {"rows": 2, "loops": [0, 1], "positions": []},
        {"rows": 1, "loops": [1], "positions": []},
        {"rows": 1, "loops": [2], "positions": [2, 3]},
        {"rows": 1, "loops": [1], "positions": []},
    ]


def test_hooks_of_one_batch_are_judged_when_they_are_taken_away(speaker, batch):
    model = speaker()
    hooks = edit_hooks(parse_edits([{"do": "zero", "place": ATTN, "loops": [0, 9]}]), model, batch)
    with pytest.raises(ConfigError, match="names loop 9"), model.hooks(hooks):
        model(**batch.inputs)
    assert not any(point._forward_hooks for point in model.hook_points())
