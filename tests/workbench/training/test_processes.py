"""Two processes make the run that one makes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def both(tmp_path):
    """Train a recipe with one process and with two; gives the histories."""
    from workbench.training import train

    def both(recipe):
        (tmp_path / "tiny.yaml").write_text(recipe.to_yaml())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        launch = ["-m", "torch.distributed.run", "--nproc_per_node", "2", f"--master_port={port}"]
        run = ["-m", "workbench.cli", "train", "tiny.yaml", "--out", "two"]
        done = subprocess.run(
            [sys.executable, *launch, *run],
            cwd=tmp_path,
            env=os.environ
            | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
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
