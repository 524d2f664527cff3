"""Which positions are run in which pass, on rows worked out by hand."""

import pytest
import torch

from workbench.hooks.passes import plan_passes

T = 9
ROWS = torch.tensor(
    [
        [1, 2, T, 3, T, 4],  # a thought after two words, another after one more
        [1, T, 2, 3, 0, 0],  # one thought, padding on the right
        [0, 0, 1, 2, 3, T],  # padding on the left, a thought at the end
        [1, 2, 3, 4, 0, 0],  # no thought
    ]
)
MASK = (ROWS > 0).long()


def columns(passes):
    return [part.tolist() for part in passes.columns]


def test_a_pass_ends_before_a_thought_and_the_next_begins_with_it():
    # The row with one thought waits in the second pass for the one with two, and the row without
    # any is run as far as the first pass is wide
    assert columns(plan_passes(ROWS, MASK, T)) == [
        [[0, 1, -1], [0, -1, -1], [2, 3, 4], [0, 1, 2]],
        [[2, 3], [-1, -1], [-1, -1], [-1, -1]],
        [[4, 5, -1], [1, 2, 3], [5, -1, -1], [3, -1, -1]],
    ]


def test_every_real_position_is_run_once():
    passes = plan_passes(ROWS, MASK, T)
    ran = torch.cat(passes.columns, dim=1)
    for row in range(4):
        found = sorted(ran[row][ran[row] >= 0].tolist())
        assert found == MASK[row].nonzero()[:, 0].tolist()


def test_positions_are_counted_from_the_first_real_token():
    passes = plan_passes(ROWS, MASK, T)
    assert passes.positions[2].tolist() == [0, 0, 0, 1, 2, 3]
    assert passes.positions[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_thoughts_are_found_in_order():
    passes = plan_passes(ROWS, MASK, T)
    assert passes.n == 2 and passes.n_thoughts.tolist() == [2, 1, 1, 0]
    assert passes.thought_at.tolist() == [[2, 4], [1, -1], [5, -1], [-1, -1]]
    assert passes.valid.tolist() == [[True, True, True, False], [True, False, False, False]]


def test_a_position_is_in_the_pass_of_the_thoughts_up_to_it():
    own = plan_passes(ROWS, MASK, T).own_pass
    assert own.tolist() == [
        [0, 0, 1, 1, 2, 2],
        [0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0],
    ]


def test_a_pass_ends_where_its_last_position_stands():
    passes = plan_passes(ROWS, MASK, T)
    assert passes.ends(0).tolist() == [1, 0, 2, 2]
    assert passes.ends(1).tolist() == [1, -1, -1, -1]


def test_what_the_passes_gave_is_put_together_in_the_order_of_the_sequence():
    passes = plan_passes(ROWS, MASK, T)
    numbers = torch.arange(24).view(4, 6, 1) + 1.0
    whole = passes.assemble([passes.gather(numbers, n) for n in range(3)])
    assert torch.equal(whole, numbers * MASK[..., None])


def test_patterns_are_put_together_by_query_and_by_key():
    passes = plan_passes(ROWS, MASK, T)
    # What a query gives a key: its own column times ten and the key's, one more each
    wanted = 10 * torch.arange(1, 7)[:, None] + torch.arange(1, 7)
    seen = wanted.tril() * MASK[:, :, None] * MASK[:, None]
    parts = []
    for number in range(3):
        keys = passes.keys(number)
        rows = torch.arange(4)[:, None, None]
        part = seen[
            rows, passes.columns[number].clamp(min=0)[..., None], keys.clamp(min=0)[:, None]
        ]
        parts.append((part * (keys >= 0)[:, None])[:, None].float())
    whole = passes.assemble(parts, "blocks.0.attn.hook_pattern")
    assert torch.equal(whole[:, 0], seen.float())


def test_what_nobody_ran_holds_what_it_is_told_to():
    passes = plan_passes(ROWS, MASK, T)
    parts = [torch.zeros(4, part.shape[1], 1) for part in passes.columns]
    whole = passes.assemble(parts, fill=7.0)
    assert torch.equal(whole[..., 0], 7.0 * (1 - MASK))


def test_rows_without_thoughts_make_one_pass():
    passes = plan_passes(torch.tensor([[1, 2, 3]]), None, T)
    assert columns(passes) == [[[0, 1, 2]]]
    assert passes.n == 0 and passes.valid.shape == (0, 1)


@pytest.mark.parametrize("row", [[T, 1, 2], [0, T, 1]])
def test_a_row_that_begins_with_a_thought_is_refused(row):
    tokens = torch.tensor([[1, T, 2], row])
    with pytest.raises(ValueError, match="row 1 begins with a thought"):
        plan_passes(tokens, (tokens > 0).long(), T)
