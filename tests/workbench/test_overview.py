import os

import pytest

from workbench.runs import load_run
from workbench.runs.overview import QUIET, overview, state
from workbench.training import train


@pytest.fixture
def run(recipe, tmp_path):
    return load_run(train(recipe(), tmp_path / "tiny", quiet=True))


def test_a_run_in_one_line(run):
    line = overview(run)
    n_parameters = sum(parameter.numel() for parameter in run.model.parameters())
    last = run.history[-4:]
    assert line == {
        "run": "tiny",
        "family": "discoloop",
        "task": "two_hop",
        "loops": 2,
        "thoughts": None,
        "parameters": n_parameters,
        "state": "finished",
        "step": 6,
        "steps": 6,
        "accuracy": {record["split"]: record["accuracy"] for record in last},
        "about": "",
    }


def test_a_run_without_final_weights_is_in_training(run):
    (run.path / "model.safetensors").unlink()
    assert state(run) == "in training"


def test_a_run_that_has_been_silent_for_long_is_stopped(run):
    (run.path / "model.safetensors").unlink()
    log = run.path / "history.jsonl"
    os.utime(log, (log.stat().st_atime, log.stat().st_mtime - 2 * QUIET))
    assert state(run) == "stopped"


def test_a_run_that_has_measured_nothing_is_at_its_beginning(run):
    (run.path / "history.jsonl").write_text("")
    assert (overview(run)["step"], overview(run)["accuracy"]) == (0, {})
