"""What every task keeps: the same bytes anywhere, and features that are each row's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.tasks import TASKS, Task, build_task

FILES = Path(__file__).parents[2] / "data" / "worded"
EXCERPT, INVENTED = str(FILES / "gsm8k_excerpt.jsonl"), str(FILES / "hotpotqa_invented.json")
VERSIONS = {
    f"{name}, {version}": (name, {"version": version})
    for version in ("matched",)
    for name in ("reachability", "boolean", "kinship")
} | {f"prosqa in {wording}": ("prosqa", {"wording": wording}) for wording in ("arrows",)}
OF_FILES = {
    "gsm8k, excerpt": ("gsm8k", {"train_file": EXCERPT, "test_file": EXCERPT}),
    "hotpotqa, invented": ("hotpotqa", {"train_file": INVENTED, "test_file": INVENTED}),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The example of every registered task, further versions and files, by what each is called."""

    def sizes(name):
        example = TASKS.example(name) or {}
        return example(tmp_path_factory.mktemp(name)) if callable(example) else dict(example)

    own = {name: (name, sizes(name)) for name in TASKS}
    versions = {case: (name, own[name][1] | more) for case, (name, more) in VERSIONS.items()}
    return own | versions | OF_FILES


def has_features(name):
    return TASKS[name].local_features is not Task.local_features


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


def test_equal_seeds_give_equal_bytes_whatever_the_hash_seed(cases):
    said = [
        subprocess.run(
            [sys.executable, "-c", PRINT_BYTES.format(cases=cases)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len({line.rpartition(" ")[2] for line in said[0]}) == len(cases)


@pytest.mark.parametrize("case", [name for name in TASKS if has_features(name)] + [*VERSIONS])
def test_features_of_a_row_do_not_hang_on_its_neighbours(case, cases):
    name, sizes = cases[case]
    task = build_task(name, seed=3, **sizes)
    batch = task.split("test")
    features = task.local_features(batch)
    for row in range(0, len(batch), 5):
        alone = task.local_features(batch[row : row + 1].trimmed())
        assert alone == {key: values[row : row + 1] for key, values in features.items()}
