"""What every task keeps: the same bytes anywhere, and features that are each row's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.tasks import TASKS, build_task

HOPS = dict(n_entities=12, n_relations=5, out_degree=3)
LENGTHS = [f"{part}_{n}" for part in ("train", "test_id", "test_ood") for n in ("two", "three")]
CASES = {
    "two_hop": ("two_hop", HOPS | dict(n_train=20, n_test_id=8, n_test_ood=8)),
    "three_hop": ("three_hop", HOPS | {f"n_{length}": 8 for length in LENGTHS}),
} | {
    f"{name}, {version}": (name, sizes | {"version": version})
    for version in ("paper", "matched")
    for name, sizes in {
        "reachability": dict(n_train=60, n_valid=20, n_test=10),
        "boolean": dict(n_train=9, n_valid=4, n_test=6, test_depths=[2, 5, 9]),
        "kinship": dict(n_train=9, n_valid=4, n_test=6),
    }.items()
}
WITH_FEATURES = [case for case in CASES if ", " in case]
FILES = Path(__file__).parents[2] / "data" / "worded"
CASES |= {
    f"prosqa in {wording}": ("prosqa", dict(n_train=20, n_valid=5, n_test=8, wording=wording))
    for wording in ("sentences", "arrows")
}
WITH_FEATURES += [case for case in CASES if case.startswith("prosqa")]
CASES |= {
    "gsm8k": (
        "gsm8k",
        dict(
            train_file=str(FILES / "gsm8k_excerpt.jsonl"),
            test_file=str(FILES / "gsm8k_excerpt.jsonl"),
        ),
    ),
    "hotpotqa": (
        "hotpotqa",
        dict(
            train_file=str(FILES / "hotpotqa_invented.json"),
            test_file=str(FILES / "hotpotqa_invented.json"),
        ),
    ),
}
PRINT_BYTES = """
import hashlib
from dataclasses import fields
from workbench.tasks import build_task
for case, (name, sizes) in {cases!r}.items():
    task = build_task(name, seed=3, **sizes)
    digest = hashlib.sha256(repr(task.shortcuts(task.default_split)).encode())
    for split, batch in task.splits.items():
        digest.update(split.encode())
        for rows in (batch, task.batch(split, 5, seed=1)):
            for field in fields(rows):
                digest.update(getattr(rows, field.name).numpy().tobytes())
    print(case, digest.hexdigest())
"""


def test_every_task_is_tried_here():
    assert {name for name, _ in CASES.values()} == set(TASKS)


def test_equal_seeds_give_equal_bytes_whatever_the_hash_seed():
    said = [
        subprocess.run(
            [sys.executable, "-c", PRINT_BYTES.format(cases=CASES)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len({line.rpartition(" ")[2] for line in said[0]}) == len(CASES)


@pytest.mark.parametrize("case", WITH_FEATURES)
def test_features_of_a_row_do_not_hang_on_its_neighbours(case):
    name, sizes = CASES[case]
    task = build_task(name, seed=3, **sizes)
    batch = task.split("test")
    features = task.local_features(batch)
    for row in range(0, len(batch), 5):
        alone = task.local_features(batch[row : row + 1].trimmed())
        assert alone == {key: values[row : row + 1] for key, values in features.items()}
