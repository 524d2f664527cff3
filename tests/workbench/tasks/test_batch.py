import pytest
import torch

from workbench.tasks import build_task
from workbench.tasks.batch import Batch


@pytest.fixture(scope="module")
def batch():
    sizes = dict(n_entities=6, n_relations=4, out_degree=3)
    chains = {
        f"n_{kind}_{hops}": 6
        for kind in ("train", "test_id", "test_ood")
        for hops in ("two", "three")
    }
    return build_task("three_hop", **sizes, **chains).split("train_id")


def test_rows_of_unequal_length_come_with_a_mask(batch):
    mask = batch.inputs["attention_mask"]
    assert torch.equal(mask.sum(1), batch.length)
    assert not batch.tokens[mask == 0].any()


def test_rows_of_equal_length_need_no_mask(batch):
    assert all(group.inputs.keys() == {"tokens"} for group in batch.by_length())


def test_groups_by_length_hold_every_row_once(batch):
    groups = list(batch.by_length())
    assert [group.tokens.shape for group in groups] == [(6, 3), (6, 4)]
    assert sorted(torch.cat([g.answer for g in groups]).tolist()) == sorted(batch.answer.tolist())


def test_trimming_drops_only_columns_of_padding(batch):
    short = batch[batch.hops == 2]
    assert short.tokens.shape[1] == 4 and short.trimmed().tokens.shape[1] == 3
    assert batch.trimmed() is batch


def test_rows_keep_all_that_is_known_of_them(batch):
    assert len(batch[2:5]) == 3
    assert torch.equal(batch[2:5].bridge, batch.bridge[2:5])
    chosen = batch[torch.tensor([4, 0])]
    assert torch.equal(chosen.facts, batch.facts[[4, 0]])


def test_batches_join_and_part(batch):
    again = Batch.cat([batch[:4], batch[4:]])
    assert torch.equal(again.tokens, batch.tokens) and torch.equal(again.bridge_at, batch.bridge_at)


def test_a_batch_moves_as_a_whole(batch):
    moved = batch.to("meta")
    assert {moved.tokens.device.type, moved.facts.device.type} == {"meta"}


def test_a_model_runs_on_the_inputs(batch, build):
    model = build("looped", d_vocab=20)
    together = model(**batch.inputs, logits_at=batch.read_at)
    for group in batch.by_length():
        alone = model(**group.inputs, logits_at=group.read_at)
        rows = batch.length == group.length[0]
        torch.testing.assert_close(together[rows], alone, atol=1e-5, rtol=1e-4)


def test_another_rows_bridges_come_only_from_rows_that_have_them(batch):
    other = batch.other_bridges()  # two- and three-hop chains: half the rows have no second bridge
    assert torch.equal(other >= 0, batch.bridge >= 0)
    for hop in range(2):
        rows = batch.bridge[:, hop] >= 0
        assert torch.equal(other[rows, hop], batch.bridge[rows, hop].roll(1))


def test_a_lone_row_finds_no_other_bridge(batch):
    assert (batch[:1].other_bridges() == -1).all()
