import pytest
import torch

from workbench.tasks import build_task
from workbench.training.measure import headline, measure, measured_rows


def test_the_same_rows_are_measured_every_time(world):
    first, second = (measured_rows(world, None, 4, "cpu") for _ in range(2))
    assert first.keys() == world.splits.keys()
    assert all(torch.equal(first[name].tokens, second[name].tokens) for name in first)


def test_only_the_splits_asked_for_are_measured(world):
    assert measured_rows(world, ["test_ood"], 4, "cpu").keys() == {"test_ood"}


def test_an_unknown_split_is_answered_with_the_nearest(world):
    with pytest.raises(ValueError, match=r"no split 'test_odd'; did you mean 'test_ood'?"):
        measured_rows(world, ["test_odd"], 4, "cpu")


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_model_in_the_mode_it_was_in(speaker, world, training):
    model = speaker().train(training)
    measure(model, world.split("test_id"))
    assert model.training is training


def test_rows_of_several_lengths_are_also_told_apart(build):
    chains = {
        f"n_{kind}_{hops}": 4
        for kind in ("train", "test_id", "test_ood")
        for hops in ("two", "three")
    }
    task = build_task("three_hop", n_entities=6, n_relations=4, out_degree=3, **chains)
    record = measure(build("looped", d_vocab=task.d_vocab), task.split("test_id"))
    by_hops = record["accuracy_by_difficulty"]
    assert by_hops.keys() == {"2", "3"}
    assert record["accuracy"] == pytest.approx(sum(by_hops.values()) / 2)


def test_the_headline_has_an_accuracy_for_each_split():
    assert headline({"a": {"accuracy": 0.5}, "b": {"accuracy": 1.0}}) == "a 0.50 b 1.00"
