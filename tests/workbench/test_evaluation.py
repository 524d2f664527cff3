import json

import pytest

from workbench.edits import parse_edits
from workbench.runs.evaluation import evaluate, in_words, wilson
from workbench.settings.config import ConfigError


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    # by hand: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.96
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)],
)
def test_the_interval_is_wilsons(right, n, low, high):
    assert wilson(right, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("right", [0, 1, 50, 99, 100])
def test_the_interval_holds_the_share_and_stays_within_0_and_1(right):
    low, high = wilson(right, 100)
    assert -1e-12 <= low <= right / 100 <= high <= 1 + 1e-12


def test_in_words_the_best_guesses_stand_first_and_no_more_than_three():
    found = {
        "run": "tiny",
        "split": "test",
        "loops": 2,
        "n": 8,
        "edits": [{"do": "zero", "place": "hook_embed"}],
        "touched": [{"rows": 1200, "loops": [], "positions": list(range(12))}],
        "accuracy": 0.75,
        "accuracy_interval": [0.5, 1.0],
        "accuracy_by_loop": [0.5, 0.75],
        "accuracy_by_difficulty": {"1": 1.0, "3": 0.5},
        "majority_rate": 0.5,
        "shortcuts": {"nodes": 0.5, "edges": 0.625, "degrees": 0.75, "ancestors": 0.6},
    }
    assert in_words(found, "hops").splitlines() == [
        "tiny on test: 0.7500 [0.5000, 1.0000] of 8",
        "after each loop: 0.5000, 0.7500",
        "edit 0: zero at hook_embed touched 1,200 rows, positions 0 to 11 (12 of them)",
        "by hops: 1: 1.0000; 3: 0.5000",
        "commonest answer 0.5000; at most, degrees 0.7500; edges 0.6250; ancestors 0.6000",
    ]


THINKING = """
name: tiny
task: {name: prosqa, n_train: 8, n_valid: 4, n_test: 8, n_nodes: 8, hops: [1, 2],
       lengths: balanced, wording: arrows}
model: {family: %s, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training: {steps: 1, batch_size: 4, measure: {n: 2},
           curriculum: {first_stage: 2, max_latent_stage: 2}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that thinks two thoughts."""
    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    folder = tmp_path_factory.mktemp("thinking")
    (folder / "tiny.yaml").write_text(THINKING % "agclr")
    recipe = load_recipe(folder / "tiny.yaml")
    return load_run(train(recipe, folder / "run", quiet=True))


def test_of_a_run_that_thinks_the_object_says_thoughts_where_others_say_loops(run):
    found = evaluate(run)
    assert found.keys() == {
        *("run", "recipe", "step", "weights", "precision", "split", "edits", "touched", "n"),
        *("patched_from", "thoughts", "trained_thoughts"),
        *("accuracy", "accuracy_interval", "accuracy_by_loop", "accuracy_by_difficulty"),
        "n_by_difficulty",
        *("answered", "majority_rate", "shortcuts"),
    }
    assert json.loads(json.dumps(found)) == found
    assert (found["thoughts"], found["trained_thoughts"], found["n"]) == (2, 2, 8)
    assert len(found["accuracy_by_loop"]) == 3  # after 0, 1 and 2 thoughts
    assert found["accuracy"] == found["accuracy_by_loop"][-1]
    assert found["split"] == "test"


def test_another_number_of_thoughts_is_marked(run):
    found = evaluate(run, thoughts=4, n=3)
    assert (found["thoughts"], found["trained_thoughts"], found["n"]) == (4, 2, 3)
    assert len(found["accuracy_by_loop"]) == 5
    assert "after 0 to 4 thoughts (trained with 2): " in in_words(found, "steps")
    assert "after 0 to 2 thoughts: " in in_words(evaluate(run, n=3), "steps")


def test_what_is_right_after_fewer_thoughts_is_what_fewer_thoughts_are_asked(run):
    assert evaluate(run, thoughts=1)["accuracy_by_loop"] == evaluate(run)["accuracy_by_loop"][:2]


def test_edits_of_thoughts_are_made_and_kept(run):
    plain = [{"do": "zero", "place": "recurrence.hook_thought", "loops": [1]}]
    assert evaluate(run, edits=parse_edits(plain), n=3)["edits"] == plain


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_loops": 2}, "--loops is for models that loop; this one has --thoughts"),
        ({"thoughts": -1}, "--thoughts -1 must be at least 0"),
        ({"split": "tset"}, "no split 'tset'; did you mean 'test'"),
        ({"thoughts": 99}, "row . has .* positions, .* of them thoughts; the model's n_ctx is"),
    ],
)
def test_what_does_not_fit_a_run_that_thinks_is_refused(run, options, sentence):
    with pytest.raises((ConfigError, ValueError), match=sentence):
        evaluate(run, **options)


def test_hotpotqas_overlap_stands_beside_its_accuracy(tmp_path):
    from pathlib import Path

    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    data = Path(__file__).parents[1] / "data" / "worded" / "hotpotqa_invented.json"
    text = THINKING.partition("task:")[0] + (
        f"task: {{name: hotpotqa, train_file: {data}, context: none}}\n"
        "model: {family: coconut, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}\n"
        "training: {steps: 1, batch_size: 2, measure: {n: 1, splits: [train]},\n"
        "           curriculum: {method: no_cot}}\n"
    )
    (tmp_path / "tiny.yaml").write_text(text)
    run = load_run(train(load_recipe(tmp_path / "tiny.yaml"), tmp_path / "run", quiet=True))
    assert 0 <= evaluate(run, n=2)["f1"] <= 1


# -- official questions in place of a split


@pytest.fixture
def official(run, tmp_path):
    """Three questions of the run's own size in the official form, with names of their own."""
    rows = []
    for problem in run.task.problems("test")[:3]:
        graph = problem.facts["graph"]
        names = [f"Name{n}" if n in graph.people else f"thing{n}" for n in range(len(graph.names))]
        said = [
            f"{names[a]} is a {names[b]}."
            if a in graph.people
            else f"Every {names[a]} is a {names[b]}."
            for a, b in graph.edges
        ]
        options = [names[graph.target], names[graph.wrong]]
        one, other = options if graph.target_first else options[::-1]
        rows.append(
            {
                "question": " ".join([*said, f"Is {names[graph.root]} a {one} or {other}?"]),
                "answer": f"{names[graph.root]} is a {names[graph.target]}.",
                "steps": ["A step."],
                "idx_to_symbol": names,
                "edges": [list(edge) for edge in graph.edges],
                "root": graph.root,
                "target": graph.target,
                "neg_target": graph.wrong,
            }
        )
    path = tmp_path / "official.json"
    path.write_text(json.dumps(rows))
    return path


def test_official_questions_are_asked_in_the_runs_own_words(run, official):
    found = evaluate(run, file=official)
    assert (found["split"], found["file"], found["n"]) == ("file", str(official), 3)
    assert (found["left_out"], found["left_out_why"]) == (0, {})
    text = in_words(found, "steps")
    assert f"asked from {official}, left out 0 (none)" in text
    assert "file" not in evaluate(run, n=2)


def test_a_file_beside_a_split_is_refused(run, official):
    with pytest.raises(ConfigError, match="--split and --file both name the questions"):
        evaluate(run, file=official, split="test")
