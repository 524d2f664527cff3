"""Two processes make the run that one makes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_two_processes_share_the_rows_and_make_the_same_run(recipe, tmp_path):
    from workbench.training import train

    # facts run both loops and no row is padded alike: what one process sees, the other does not
    (tmp_path / "tiny.yaml").write_text(recipe(loops="model").to_yaml())
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
    train(recipe(loops="model"), tmp_path / "one", quiet=True)
    one, two = (
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert len(one) == len(two)
    for alone, shared in zip(one, two, strict=True):
        assert shared["loss"] == pytest.approx(alone["loss"], abs=1e-4)
        if alone["gradient_norm"] is not None:
            for key in ("gradient_norm", "gradient_norm_by_loop"):
                assert shared[key] == pytest.approx(alone[key], rel=1e-3)
