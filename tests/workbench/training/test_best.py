"""The best step of each stage is kept, and the last stage's makes the final model."""

import pytest
import torch

from workbench.settings.files import read_tensors
from workbench.training import train
from workbench.training.best import BestSteps


def weights(value):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, value)
    return model


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "steps").mkdir()
    return tmp_path


def kept(folder):
    return sorted(int(path.stem) for path in (folder / "steps").iterdir())


def test_one_step_of_each_stage_is_kept_and_of_equals_the_first(folder):
    best = BestSteps(folder, lambda step: False)
    offers = [(0, 1, 0.5), (0, 2, 0.7), (0, 3, 0.7), (1, 4, 0.2), (1, 5, 0.1), (1, 6, 0.3)]
    for stage, step, accuracy in offers:
        best.offer(stage, step, accuracy, weights(step))
    assert kept(folder) == [2, 6]
    assert best.last()["weight"].item() == 6


def test_the_final_weights_are_of_the_last_stage_however_good_an_earlier_one_was(folder):
    best = BestSteps(folder, lambda step: False)
    for stage, step, accuracy in [(0, 1, 1.0), (1, 2, 0.3), (1, 3, 0.2)]:
        best.offer(stage, step, accuracy, weights(step))
    assert best.last()["weight"].item() == 2


def test_a_step_that_is_kept_anyway_outlives_a_better_one(folder):
    best = BestSteps(folder, lambda step: step == 1)
    for step, accuracy in [(1, 0.1), (2, 0.2), (3, 0.3)]:
        best.offer(0, step, accuracy, weights(step))
    assert kept(folder) == [1, 3]


def test_what_is_known_goes_to_a_point_and_back(folder):
    best = BestSteps(folder, lambda step: False)
    best.offer(0, 1, 0.5, weights(1))
    again = BestSteps(folder, lambda step: False)
    again.restore(best.plain())
    again.offer(0, 2, 0.4, weights(2))
    assert kept(folder) == [1]
    assert again.last()["weight"].item() == 1


def test_without_an_offer_there_is_no_best(folder):
    assert BestSteps(folder, lambda step: False).last() is None


def test_a_run_ends_with_the_best_weights_of_its_last_stage(staged, tmp_path):
    import json

    folder = train(staged(), tmp_path / "run", quiet=True)
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    wanted = {}
    for record in records:
        before = wanted.get(record["stage"])
        if before is None or record["accuracy"] > before["accuracy"]:
            wanted[record["stage"]] = record
    best = {record["step"] for record in wanted.values()}
    assert set(kept(folder)) == best | {0, 9}  # the first and the last step are always there
    final = read_tensors(folder / "model.safetensors")
    half = read_tensors(folder / "steps" / f"{wanted[2]['step']}.safetensors")
    assert all(torch.equal(final[name].bfloat16(), half[name]) for name in final)
    assert not (folder / "best.safetensors").exists()
