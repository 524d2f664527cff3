from collections import Counter

import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.training.stream import BatchStream, proportional

EQUAL = {"train_atom": 0.5, "train_id": 0.5}


def rows(batch):
    return [tuple(row) for row in batch.tokens.tolist()]


def stream(world, mixture=EQUAL, batch_size=8, seed=0):
    return BatchStream(world, mixture, batch_size, seed)


def test_a_batch_depends_on_seed_and_number_alone(world):
    straight, jumping = stream(world), stream(world)
    batches = [rows(straight.batch(number)) for number in range(20)]
    for number in (13, 2, 19, 2, 0):
        assert rows(jumping.batch(number)) == batches[number]


def test_another_seed_gives_another_order(world):
    assert rows(stream(world).batch(0)) != rows(stream(world, seed=1).batch(0))


def test_every_epoch_holds_each_row_once(world):
    # 12 chains, 4 in each batch: an epoch of the chains is 3 batches
    chains = stream(world)
    for epoch in range(3):
        seen = [
            row
            for number in range(3 * epoch, 3 * epoch + 3)
            for row in rows(chains.batch(number)[4:])
        ]
        assert Counter(seen) == Counter(rows(world.split("train_id")))


def test_an_epoch_may_end_within_a_batch(world):
    # 12 chains, 5 in each batch: after 12 batches every chain has come 5 times
    chains = stream(world, {"train_id": 1.0}, batch_size=5)
    seen = Counter(row for number in range(12) for row in rows(chains.batch(number)))
    assert set(seen.values()) == {5} and len(seen) == 12


def test_a_batch_larger_than_the_split_goes_round_it(world):
    seen = Counter(rows(stream(world, {"train_id": 1.0}, batch_size=30).batch(0)))
    assert set(seen.values()) == {2, 3} and len(seen) == 12


def test_epochs_come_in_different_orders(world):
    chains = stream(world, {"train_id": 1.0}, batch_size=12)
    assert rows(chains.batch(0)) != rows(chains.batch(1))


def test_a_mixture_is_kept_in_every_batch(world):
    mixed = stream(world, {"train_atom": 0.25, "train_id": 0.75})
    assert mixed.counts == {"train_atom": 2, "train_id": 6}
    for number in range(3):
        hops = mixed.batch(number).hops.tolist()
        assert (hops.count(1), hops.count(2)) == (2, 6)


@pytest.mark.parametrize("batch_size", [1, 7, 48, 512])
def test_shares_that_are_no_whole_rows_still_fill_the_batch(world, batch_size):
    assert len(stream(world, None, batch_size).batch(0)) == batch_size


def test_without_a_mixture_splits_come_in_proportion_to_their_sizes(world):
    assert proportional(world) == {"train_atom": 36 / 48, "train_id": 12 / 48}


def test_the_epoch_counts_the_chains(world):
    assert [stream(world).epoch(step) for step in (0, 3, 6)] == [0.0, 1.0, 2.0]


def test_an_unknown_split_is_answered_with_the_nearest(world):
    with pytest.raises(
        ConfigError, match=r"mixture: no split 'train_ad'; did you mean 'train_id'?"
    ):
        stream(world, {"train_ad": 1.0})


def test_drawing_a_batch_leaves_the_global_generators_alone(world):
    before = torch.random.get_rng_state()
    stream(world).batch(3)
    assert torch.equal(torch.random.get_rng_state(), before)
