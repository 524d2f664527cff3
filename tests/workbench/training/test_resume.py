"""A run that was killed and resumed is the run that was not, bit for bit."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, read_tensors
from workbench.settings.recipe import load_recipe
from workbench.training import Trainer, train
from workbench.training.resume import load_point, save_point

KILLED_IN_STEP = 6
KILL = """
import os, signal, sys
from pathlib import Path
import torch
from workbench.settings.recipe import load_recipe
from workbench.training import Trainer

def kill(module, args):
    if module.training and trainer.step == {step} - 1:
        os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(1)
trainer = Trainer(load_recipe(sys.argv[1]), Path(sys.argv[2]), quiet=True)
trainer.model.register_forward_pre_hook(kill)
trainer.start(resume=False)
trainer.run()
"""


class Stop(BaseException):
    """What stops a run from outside."""


def history(folder):
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line) | {"seconds": 0} for line in lines]


def same(folder, other):
    """Whether two runs ended with the same weights, moments and history."""
    for name in ("model.safetensors", "steps/4.safetensors", "resume/state.safetensors"):
        mine, theirs = read_tensors(folder / name), read_tensors(other / name)
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine), name
    return history(folder) == history(other)


@pytest.fixture(scope="module")
def long(recipe):
    # 12 chains, 2 in each batch: an epoch has 6 steps, so every point but the sixth is within one
    return recipe(steps=9, measure={"every": 1})


@pytest.fixture(scope="module")
def straight(long, tmp_path_factory):
    return train(long, tmp_path_factory.mktemp("runs") / "straight", quiet=True)


def stopped(recipe, folder, step):
    """A run that was stopped while it made a step."""
    trainer = Trainer(recipe, folder, quiet=True)

    def stop(module, args):
        if module.training and trainer.step == step - 1:
            raise Stop

    trainer.model.register_forward_pre_hook(stop)
    trainer.start(resume=False)
    with pytest.raises(Stop):
        trainer.run()
    return folder


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 8, 9])
def test_a_stopped_run_resumes_to_the_same_end(long, straight, tmp_path, step):
    folder = stopped(long, tmp_path / "stopped", step)
    train(long, folder, resume=True, quiet=True)
    assert same(folder, straight)


def test_a_killed_run_resumes_to_the_same_end(long, straight, tmp_path):
    (tmp_path / "long.yaml").write_text(long.to_yaml())
    folder = tmp_path / "killed"
    program = KILL.format(step=KILLED_IN_STEP)
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "long.yaml"), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert history(folder)[-1]["step"] == KILLED_IN_STEP - 1
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"step": 6, "epo')  # as if the kill had come while a line was written
    train(load_recipe(tmp_path / "long.yaml"), folder, resume=True, quiet=True)
    assert same(folder, straight)


def test_a_run_may_be_stopped_twice(long, straight, tmp_path):
    folder = stopped(long, tmp_path / "stopped", 4)
    trainer = Trainer(long, folder, quiet=True)
    trainer.start(resume=True)
    assert trainer.step == 2
    trainer.lock.drop()
    train(long, folder, resume=True, quiet=True)
    assert same(folder, straight)


def test_resuming_a_finished_run_changes_nothing(long, straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "finished")
    train(long, folder, resume=True, quiet=True)
    for path in straight.rglob("*"):
        copy = folder / path.relative_to(straight)
        assert path.is_dir() or path.read_bytes() == copy.read_bytes(), path


def test_resuming_where_nothing_has_begun_begins(long, straight, tmp_path):
    folder = train(long, tmp_path / "fresh", resume=True, quiet=True)
    assert same(folder, straight)


def test_seconds_go_on_where_they_stopped(long, tmp_path):
    folder = stopped(long, tmp_path / "stopped", 5)
    before = json.loads((folder / "resume" / "state.json").read_text())["seconds"]
    trainer = Trainer(long, folder, quiet=True)
    trainer.start(resume=True)
    assert trainer.seconds == before > 0


def test_resuming_with_another_recipe_names_what_differs(recipe, long, tmp_path):
    folder = stopped(long, tmp_path / "stopped", 5)
    other = recipe(steps=9, measure={"every": 1}, optimizer={"lr": 0.5})
    with pytest.raises(ConfigError, match=r"another recipe \(it differs in training\)"):
        train(other, folder, resume=True, quiet=True)


@pytest.mark.parametrize("size", [0, 100, -1])
def test_a_truncated_point_is_named(long, tmp_path, size):
    folder = stopped(long, tmp_path / "stopped", 5)
    path = folder / "resume" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FileError, match=r"resume/state\.safetensors is truncated or no safetens"):
        train(long, folder, resume=True, quiet=True)


def test_a_point_with_half_its_plain_values_is_named(long, tmp_path):
    folder = stopped(long, tmp_path / "stopped", 5)
    path = folder / "resume" / "state.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(FileError, match=r"resume/state\.json is not JSON"):
        train(long, folder, resume=True, quiet=True)


def point(folder, step):
    """A small model and optimizer after one step, and their point."""
    torch.manual_seed(step)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    save_point(folder, model, optimizer, {"step": step})
    return model, optimizer


def restored(folder):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    return model, optimizer, load_point(folder, model, optimizer)


def test_a_point_restores_weights_moments_and_plain_values(tmp_path):
    model, optimizer = point(tmp_path, 3)
    other, again, state = restored(tmp_path)
    assert state == {"step": 3}
    assert torch.equal(other.weight, model.weight)
    mine, theirs = optimizer.state_dict()["state"], again.state_dict()["state"]
    for index, moments in mine.items():
        assert all(torch.equal(moments[name], theirs[index][name]) for name in moments)


def test_a_point_restores_every_random_state(tmp_path):
    point(tmp_path, 3)
    drawn = []
    for _ in range(2):
        restored(tmp_path)
        drawn.append((random.random(), np.random.rand(), np.random.randn(), float(torch.rand(1))))
    assert drawn[0] == drawn[1]


def test_the_newest_point_counts(tmp_path):
    point(tmp_path, 3)
    point(tmp_path, 4)
    assert restored(tmp_path)[2] == {"step": 4}
    assert [path.name for path in tmp_path.iterdir()] == ["resume"]


def test_a_kill_between_the_renames_leaves_the_old_point(tmp_path):
    point(tmp_path, 3)
    (tmp_path / "resume").rename(tmp_path / "resume.old")
    assert restored(tmp_path)[2] == {"step": 3}


def test_a_kill_while_a_point_is_written_leaves_the_old_one(tmp_path):
    point(tmp_path, 3)
    (tmp_path / "resume.new").mkdir()
    (tmp_path / "resume.new" / "state.safetensors").write_bytes(b"half")
    assert restored(tmp_path)[2] == {"step": 3}
    point(tmp_path, 4)
    assert restored(tmp_path)[2] == {"step": 4}


@pytest.mark.parametrize("name", ["resume", "resume.old"])
@pytest.mark.parametrize("killed_at", [1, 2])
def test_a_kill_at_any_rename_leaves_a_point(tmp_path, monkeypatch, name, killed_at):
    point(tmp_path, 3)
    (tmp_path / "resume").rename(tmp_path / name)
    rename, calls = Path.rename, []

    def stop(path, target):
        calls.append(path)
        if len(calls) == killed_at:
            raise Stop
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stop)
    with contextlib.suppress(Stop):
        point(tmp_path, 4)
    assert restored(tmp_path)[2] in ({"step": 3}, {"step": 4})


def test_without_a_point_there_is_nothing_to_load(tmp_path):
    assert restored(tmp_path)[2] is None


def test_a_run_from_before_a_field_was_there_goes_on(long, straight, tmp_path):
    folder = stopped(long, tmp_path / "stopped", 5)
    path = folder / "recipe.yaml"
    new = ("n_key_value_heads", "head_width", "use_qk_norm", "gated_mlp", "rotary_scaling")
    lines = path.read_text().splitlines(keepends=True)
    old = [line for line in lines if line.strip().split(":")[0] not in new]
    assert len(old) == len(lines) - len(new)
    path.write_text("".join(old))
    assert same(train(long, folder, resume=True, quiet=True), straight)
