"""Two processes make the run that one makes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from workbench.settings.files import read_tensors

ROOT = Path(__file__).parents[3]


BOTH = """
import shutil, sys
from pathlib import Path
from workbench.settings.recipe import load_recipe
from workbench.training import Trainer

trainer = Trainer(load_recipe("tiny.yaml"), Path("two"), quiet=True)
first = trainer.accelerator.is_main_process

def copy(*_):
    # As a kill would leave it: the folder while step 4 is made
    if trainer.step == 3 and first and not Path("half").exists():
        shutil.copytree("two", "half", ignore=shutil.ignore_patterns(".lock"))

trainer.model.register_forward_pre_hook(copy)
trainer.start(resume=False)
trainer.run()
"""


def launch(folder, recipe, *run, n=2):
    """Run a module or a script on a recipe with several processes."""
    (folder / "tiny.yaml").write_text(recipe.to_yaml())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = ["-m", "torch.distributed.run", f"--nproc_per_node={n}", f"--master_port={port}"]
    return subprocess.run(
        [sys.executable, *launcher, *run],
        cwd=folder,
        env=os.environ
        | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def training(*options, out="two"):
    return "-m", "workbench.cli", "train", "tiny.yaml", "--out", out, *options


@pytest.fixture
def both(tmp_path):
    """Train a recipe with one process and with two; gives the histories."""
    from workbench.training import train

    def both(recipe):
        done = launch(tmp_path, recipe, *training())
        assert done.returncode == 0, done.stderr[:2000]
        train(recipe, tmp_path / "one", quiet=True)
        return [
            [json.loads(line) for line in (tmp_path / n / "history.jsonl").read_text().splitlines()]
            for n in ("one", "two")
        ]

    return both


def check_same(one, two, keys):
    assert len(one) == len(two)
    for alone, shared in zip(one, two, strict=True):
        assert shared["loss"] == pytest.approx(alone["loss"], abs=1e-4)
        if alone["gradient_norm"] is not None:
            for key in keys:
                assert shared[key] == pytest.approx(alone[key], rel=1e-3)


def test_two_processes_share_the_rows_and_make_the_same_run(recipe, both):
    # facts run both loops and no row is padded alike: what one process sees, the other does not
    check_same(*both(recipe(loops="model")), ["gradient_norm", "gradient_norm_by_loop"])


def test_two_processes_train_gates_that_not_every_stage_and_row_uses(staged, both):
    # Stage 0 has no thought; later a row's last thought writes what nothing reads
    one, two = both(staged(model_changes={"family": "agclr"}))
    assert {record["stage"] for record in one} == {0, 1, 2}
    check_same(one, two, ["gradient_norm"])


def test_two_processes_resume_to_the_same_bits(recipe, tmp_path):
    # The ranks have rows of other lengths, so that their masks of dropout part after one step
    whole = recipe(steps=6, save={"resume_every": 2}, model_changes={"dropout": 0.3})
    (tmp_path / "both.py").write_text(BOTH)
    assert launch(tmp_path, whole, "both.py").returncode == 0
    assert not (tmp_path / "half" / "model.safetensors").exists()
    done = launch(tmp_path, whole, *training("--resume", out="half"))
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = (read_tensors(tmp_path / name / "model.safetensors") for name in ("half", "two"))
    assert all(torch.equal(one[name], two[name]) for name in two)


def test_more_processes_than_rows_are_refused_in_a_sentence(recipe, tmp_path, monkeypatch):
    from workbench.settings.config import ConfigError
    from workbench.training import Trainer

    trainer = Trainer(recipe(batch_size=1), tmp_path / "run", quiet=True)
    monkeypatch.setattr(type(trainer.accelerator), "num_processes", 2)
    with pytest.raises(ConfigError, match="2 processes cannot share a batch of 1 rows"):
        trainer._parts(trainer.lessons.batch(0))
