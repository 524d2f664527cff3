"""HotpotQA (Yang et al. 2018): questions whose answer requires facts from two paragraphs.

The data has no annotated steps; its supporting facts, in their order, serve as steps. Answers are
scored by exact match and F1, as in the official script.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from workbench.registries import TASKS
from workbench.settings.files import write_text
from workbench.tasks.worded.file_task import FileTask, FileTaskConfig
from workbench.tasks.worded.hotpotqa.paragraphs import hotpotqa_problems, load_hotpotqa
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.scoring import Score, score_hotpotqa


class HotpotqaConfig(FileTaskConfig):
    """Source of the problems, e.g. `hub: hotpotqa/hotpot_qa` with `hub_name: distractor`."""

    # Paragraphs put before the question
    context: Literal["none", "supporting", "all"] = "supporting"


def _example(folder: Path) -> dict[str, Any]:
    """Write a file of questions over two paragraphs."""
    rows = [
        {
            "_id": str(number),
            "question": f"In which country was the architect of {tower} born?",
            "answer": country,
            "type": "bridge",
            "level": "easy",
            "supporting_facts": [[tower, 0], [architect, 0]],
            "context": [
                [tower, [f"{tower} was designed by {architect}."]],
                [architect, [f"{architect} was born in {country}."]],
            ],
        }
        for number, (tower, architect, country) in enumerate(
            [
                ("Grey Tower", "Ilsa Brandeck", "Tarvinia"),
                ("Long Mole", "Oto Mirren", "Selland"),
                ("Salt Hall", "Una Farrow", "Tarvinia"),
            ]
        )
    ]
    file = folder / "questions.json"
    write_text(file, json.dumps(rows))
    return {"train_file": str(file), "test_file": str(file)}


@TASKS.register("hotpotqa", example=_example)
class Hotpotqa(FileTask):
    """Questions over several paragraphs, answered with a few words from them, or yes or no."""

    Config = HotpotqaConfig
    cfg: HotpotqaConfig
    hub_splits: ClassVar[Mapping[str, str]] = {"train": "train", "valid": "validation"}

    def load(self, path: Path) -> list[Problem]:
        return load_hotpotqa(path, self.cfg.context)

    def from_rows(self, rows: Iterable[Mapping[str, Any]], source: str) -> list[Problem]:
        return hotpotqa_problems(rows, source, self.cfg.context)

    def score(self, problem: Problem, said: str) -> Score:
        reread = self.vocabulary.reread
        return score_hotpotqa(reread(said), reread(problem.answer))
