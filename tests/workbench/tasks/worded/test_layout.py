"""Where things stand in a laid-out row: what is scored, where the answer is read, bridges."""

import pytest
import torch

from workbench.tasks.batch import NONE
from workbench.tasks.worded.layout import ALL, COT, Encoded, Layout, Specials, lay_out

SPECIALS = Specials(start=90, end=91, latent=92, pause=93, stop=99)
LONG = Encoded([1, 2, 3], [[11, 12], [21], [31]], [70, 80], 1, [12, 21], (80, 81))
SHORT = Encoded([4], [[41]], [70, 81], 1, [], (81, 80))


@pytest.fixture
def batch():
    thinking = Layout("latent", 4, skipped=2, thoughts_per_step=2)
    return lay_out([LONG, SHORT], [thinking, COT], SPECIALS, [7, 3])


def test_rows_are_as_written_by_hand(batch):
    assert batch.tokens.tolist() == [
        [1, 2, 3, 90, 92, 92, 92, 92, 91, 31, 70, 80, 99],
        [4, 41, 70, 81, 99, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert batch.length.tolist() == [13, 5]
    assert batch.number.tolist() == [7, 3]


def test_what_follows_the_thoughts_is_scored_and_nothing_else(batch):
    assert [row.nonzero()[:, 0].tolist() for row in batch.scored] == [[9, 10, 11, 12], [1, 2, 3, 4]]
    assert batch.prompt.tolist() == [9, 1]


def test_the_answer_is_read_before_the_token_that_decides_it(batch):
    assert batch.read_at.tolist() == [10, 2]
    assert batch.answer.tolist() == [80, 81]
    assert batch.candidates.tolist() == [[80, 81], [81, 80]]


def test_thoughts_and_steps_are_counted(batch):
    assert batch.n_thoughts.tolist() == [4, 0]
    assert batch.steps.tolist() == [3, 1]


def test_a_bridge_is_read_where_its_last_thought_is_made(batch):
    # Two thoughts a step: the second thought of each stands at 5 and 7, and is made at 4 and 6
    assert batch.bridge.tolist() == [[12, 21], [NONE, NONE]]
    assert batch.bridge_at.tolist() == [[4, 6], [NONE, NONE]]


def test_pauses_are_no_thoughts():
    batch = lay_out([SHORT], [Layout("pause", 2, marked=False, skipped=ALL)], SPECIALS, [0])
    assert batch.tokens.tolist() == [[4, 93, 93, 70, 81, 99]]
    assert batch.n_thoughts.tolist() == [0]


def test_prompts_are_what_stands_before_the_scored_tokens(batch):
    given = batch.prompts()
    assert given["tokens"].tolist()[1] == [4] + [0] * 8
    assert given["attention_mask"].sum(1).tolist() == [9, 1]


def test_losses_of_a_sure_model_are_zero_and_padding_costs_nothing(batch):
    at, real = batch.said_at()
    assert real.tolist() == [[True] * 4, [True] * 4]
    logits = torch.full((2, 4, 100), -1e4)
    logits.scatter_(2, batch.tokens.gather(1, at)[..., None], 1e4)
    assert not batch.said_losses(logits).any()
    one = batch[1:].trimmed()
    assert one.tokens.shape == (1, 5)
    assert one.said_losses(torch.zeros(1, 4, 100)).sum() == pytest.approx(4 * 4.60517, rel=1e-4)
