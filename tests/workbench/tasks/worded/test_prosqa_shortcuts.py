"""What is to be told of the answer without looking at who is asked about."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from workbench.runs.evaluation import wilson
from workbench.tasks.worded.prosqa.concept_graph import Graph, swapped
from workbench.tasks.worded.prosqa.drawing import GraphSettings, draw_graphs
from workbench.tasks.worded.prosqa.entity_blind import entity_blind_features, target_first

N = 1_200


def test_differences_are_as_counted_by_hand():
    # Ada → 2 → 4 and Ada → 4; Bob → 3; the target is 4, named last
    graph = Graph(
        names=("Ada", "Bob", "dropus", "lopus", "hupus"),
        edges=((0, 2), (1, 3), (2, 4), (0, 4)),
        root=0,
        other_root=1,
        target=4,
        wrong=3,
        target_first=False,
    )
    found = {name: int(values[0]) for name, values in entity_blind_features([graph]).items()}
    assert found == {
        "parents": 1 - 2,
        "ancestors within 2": 1 - 2,
        "ancestors within 3": 1 - 2,
        "ancestors within 4": 1 - 2,
        "ancestors": 1 - 2,
        "people among the ancestors": 0,
        "steps from the nearest person": 0,
        "steps from the furthest person": 0,
        "children": 0,
        "place of the first mention": 1 - 2,
    }
    assert target_first([graph]).tolist() == [False]


def test_they_do_not_change_with_the_entity_asked_about_but_the_answer_does():
    graphs = draw_graphs(100, 0)
    others = [swapped(graph) for graph in graphs]
    for name, values in entity_blind_features(graphs).items():
        assert (values == entity_blind_features(others)[name]).all()
    assert (target_first(graphs) != target_first(others)).all()


@pytest.fixture(scope="module")
def drawn():
    """Features and answers of each version."""
    graphs = {v: draw_graphs(N, 1, GraphSettings(version=v)) for v in ("paper", "matched")}
    return {
        version: (np.stack(list(entity_blind_features(drawn).values()), 1), target_first(drawn))
        for version, drawn in graphs.items()
    }


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(fit_intercept=False, max_iter=1000),
        HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0),
    ],
    ids=["linear", "trees"],
)
def test_matching_takes_the_shortcut_away(drawn, classifier):
    share = {
        version: cross_val_score(classifier, features, answers, cv=5).mean()
        for version, (features, answers) in drawn.items()
    }
    low, high = wilson(round(share["matched"] * N), N)
    assert low < 0.5 < high
    assert share["paper"] > 0.85
