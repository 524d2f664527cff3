"""Module paths that other programs import: each stays, and is one module under all its names."""

from importlib import import_module

import pytest

PATHS = {
    "analyses.attention": "analyses.read.attention",
    "analyses.labels": "analyses.kit.labels",
    "analyses.logit_lens": "analyses.read.logit_lens",
    "workbench.complaint": "workbench.settings.errors",
    "workbench.runs.evaluation": "workbench.runs.evaluation",
    "workbench.files": "workbench.settings.files",
    "workbench.recipe": "workbench.settings.recipe",
    "workbench.vocabulary": "workbench.words.vocabulary",
}
NAMES = {
    "workbench.cli": ["main"],
    "workbench.edits": ["EDITS", "Edit", "Watch", "edit_hooks", "parse_edits", "to_plain"],
    "workbench.hooks": ["HookPoint", "LoopClock", "at_loop", "at_position", "is_heard"],
    "workbench.instruments.speaking": ["hear", "speak"],
    "workbench.models": ["FAMILIES", "DiscoLoop", "build_model", "family", "model_config"],
    "workbench.pretrained": ["from_pretrained"],
    "workbench.recurrence.concept_stream": ["ConceptStream"],
    "workbench.runs": ["Run", "SHIPPED", "load_run", "run_folders"],
    "workbench.tasks": ["TASKS", "Task", "TwoHop", "build_task", "task_from"],
    "workbench.tasks.batch": ["Batch", "GraphBatch", "HopBatch"],
    "workbench.tasks.worded.scoring": ["Score", "score_gsm8k", "score_hotpotqa", "score_prosqa"],
    "workbench.training.resolve": ["check_kind"],
    "workbench.training.trainer": ["Trainer", "train"],
}


@pytest.mark.parametrize("old", PATHS)
def test_a_module_that_moved_is_the_same_one_under_its_old_name(old):
    assert import_module(old) is import_module(PATHS[old])


@pytest.mark.parametrize("path", NAMES)
def test_a_public_module_has_its_names(path):
    module = import_module(path)
    assert all(hasattr(module, name) for name in NAMES[path])
