"""GSM8K (Cobbe et al. 2021): word problems from the official file, the augmented text or the Hub.

Steps are the calculator annotations, `<<48/2=24>>`, as in iCoT's augmented file, or the lines of
the solution. An answer is right if its number is right.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from workbench.registries import TASKS
from workbench.settings.files import write_text
from workbench.tasks.worded.file_task import FileTask, FileTaskConfig
from workbench.tasks.worded.gsm8k.sums import gsm8k_problems, load_gsm8k
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.scoring import Score, score_gsm8k


class Gsm8kConfig(FileTaskConfig):
    """Source of the problems, e.g. `hub: openai/gsm8k` with `hub_name: main`."""

    steps: Literal["marks", "lines"] = "marks"


def _example(folder: Path) -> dict[str, Any]:
    """Write a file of word problems."""
    sums = [(a, b) for a in (2, 3, 5) for b in (4, 7)]
    rows = [
        {
            "question": f"Ada has {a} boxes of {b} pens and {a} pens more. How many has she?",
            "answer": f"{a}*{b} = <<{a}*{b}={a * b}>>{a * b}\n"
            f"{a * b}+{a} = <<{a * b}+{a}={a * b + a}>>{a * b + a}\n#### {a * b + a}",
        }
        for a, b in sums
    ]
    file = folder / "sums.jsonl"
    write_text(file, "".join(json.dumps(row) + "\n" for row in rows))
    return {"train_file": str(file), "test_file": str(file)}


@TASKS.register("gsm8k", example=_example)
class Gsm8k(FileTask):
    """Word problems: "A robe takes 2 bolts of blue fiber and half that much white fiber …"."""

    Config = Gsm8kConfig
    cfg: Gsm8kConfig
    hub_splits: ClassVar[Mapping[str, str]] = {"train": "train", "test": "test"}

    def load(self, path: Path) -> list[Problem]:
        return load_gsm8k(path, self.cfg.steps)

    def from_rows(self, rows: Iterable[Mapping[str, Any]], source: str) -> list[Problem]:
        return gsm8k_problems(rows, source, self.cfg.steps)

    def score(self, problem: Problem, said: str) -> Score:
        return score_gsm8k(self.vocabulary.reread(said), problem.answer)
