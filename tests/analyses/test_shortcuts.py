"""Guesses from local features, on tasks whose answers do and do not lie in them."""

import numpy as np
import pytest
import torch

from analyses import analyse, shortcuts
from analyses.measure.shortcuts import ALL, MAJORITY, versions_of
from workbench.cli import main
from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.worded.prosqa import Prosqa

SMALL = dict(n_train=400, n_valid=40, n_test=80, test_hops=[1, 3, 6])


@pytest.fixture(scope="module")
def task():
    return build_task("reachability", **SMALL)


@pytest.fixture(scope="module")
def found(task):
    return shortcuts(task)


def accuracy(found, version, guess):
    """Accuracies of a guess by difficulty."""
    return found.accuracy[found.versions.index(version), found.guesses.index(guess)]


def test_both_versions_stand_side_by_side_whichever_is_given(found):
    assert found.versions == ("paper", "matched") and found.split == "test"
    other = shortcuts(build_task("reachability", version="matched", **SMALL))
    assert torch.equal(other.accuracy, found.accuracy) and other.versions == found.versions


def test_the_papers_graphs_are_told_apart_without_paths(found):
    assert (accuracy(found, "paper", ALL) > 0.75).all()
    assert (accuracy(found, "paper", "ancestors of target within 2") > 0.7).all()
    assert (accuracy(found, "paper", MAJORITY) == 0.5).all()


def test_matched_graphs_are_not(found):
    version = found.versions.index("matched")
    assert (found.low[version] < 0.5).all() and (found.high[version] > 0.5).all()
    assert (found.accuracy[version] == 0.5).all()


def test_intervals_hold_the_accuracy_and_are_wilsons(found):
    assert (found.low <= found.accuracy).all() and (found.accuracy <= found.high).all()
    # 40 of 80: 1/2 ± 1.96/(2·√(80 + 1.96²)), the score interval worked out
    half = 1.959964 / (2 * np.sqrt(80 + 1.959964**2))
    first = found.guesses.index(MAJORITY)
    assert found.low[0, first, 0] == pytest.approx(0.5 - half, abs=1e-6)
    assert found.n.tolist() == [[80] * 3] * 2


def test_the_best_feature_is_chosen_by_the_rows_of_training(found):
    best = found.best_feature(0)
    assert found.guesses[best] not in (ALL, MAJORITY)
    alone = [i for i, name in enumerate(found.guesses) if name not in (ALL, MAJORITY)]
    assert found.fitted[0, best] == found.fitted[0, alone].max()


def test_all_features_fit_the_training_rows_better_than_the_best(found):
    every = found.guesses.index(ALL)
    assert found.fitted[0, every] > found.fitted[0, found.best_feature(0)]


def test_single_features_are_what_the_task_itself_reports(task, found):
    for name, share in task.shortcuts("test").items():
        if name in found.guesses:
            assert found.overall[0, found.guesses.index(name)] == pytest.approx(share)


def test_a_task_in_one_version_is_taken_as_it_is(world):
    assert versions_of(world) == {"the task": world}


def test_a_task_that_names_no_features_is_refused(world):
    with pytest.raises(ValueError, match=r"no split 'train'|names no features"):
        shortcuts(world, split="test_id")


def test_another_split_can_be_asked_about(task):
    found = shortcuts(task, split="valid")
    assert found.split == "valid" and int(found.n.sum()) == 2 * 40
    assert torch.isnan(found.accuracy).sum() == 0


def test_the_figure_has_a_panel_for_each_version_and_names_each_line_once(found):
    figure = found.figure()
    assert [note.text for note in figure.layout.annotations] == ["paper", "matched"]
    named = [t.name for t in figure.data if t.showlegend and t.name]
    assert sorted(named) == sorted({*named}) and {ALL, MAJORITY} <= {*named}


def test_a_runs_task_is_meant_when_a_run_is_given(graph_run):
    found = analyse("shortcuts", graph_run, split="valid")
    assert found.provenance.split == "valid" and found.result.split == "valid"
    name = graph_run.name
    assert f"found = analyse('shortcuts', {name!r}, split='valid')" in found.code()


def test_an_unknown_split_is_answered_with_the_nearest(graph_run):
    with pytest.raises(ValueError, match=r"no split 'tests'; did you mean 'test'?"):
        analyse("shortcuts", graph_run, split="tests")


def test_the_command_line_writes_the_analysis(graph_run, tmp_path, capsys):
    assert main(["analyse", "shortcuts", str(graph_run.path), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("without reasoning on test, paper: boosted trees on 21 features")
    assert (tmp_path / "shortcuts.csv").exists()


def test_a_task_that_names_no_features_says_so(world):
    with pytest.raises(ValueError, match="TwoHop names no features"):
        shortcuts(world)


def test_concepts_of_a_matched_graph_are_not_told_apart_by_how_they_look():
    sizes = dict(n_train=300, n_valid=5, n_test=200, n_nodes=16, hops=[3, 4], wording="arrows")
    found = shortcuts(build_task("prosqa", **sizes))
    assert found.versions == ("paper", "matched") and found.left_out == ()
    trees = found.guesses.index(ALL)
    assert found.overall[0, trees] > 0.9 and 0.4 < found.overall[1, trees] < 0.6


def test_a_version_that_the_sizes_leave_no_room_for_is_left_out_with_the_reason(monkeypatch):
    read = Prosqa.read_problems

    def refuse_matched(task, split):
        if task.cfg.version == "matched":
            raise ConfigError("no room for a twin")
        return read(task, split)

    monkeypatch.setattr(Prosqa, "read_problems", refuse_matched)
    sizes = dict(n_train=30, n_valid=5, n_test=10, n_nodes=12, hops=[3, 3], wording="arrows")
    found = shortcuts(build_task("prosqa", **sizes))
    assert found.versions == ("paper",) and found.left_out == ("matched: no room for a twin",)
    assert found.summary().endswith("without matched: no room for a twin")
    with pytest.raises(ConfigError, match="no room"):
        shortcuts(build_task("prosqa", version="matched", **sizes))
