"""ProsQA as a task: disjoint splits, the swapped control, typed questions."""

import json
from pathlib import Path

import pytest

from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.worded.layout import ALL, COT, Layout
from workbench.tasks.worded.prosqa.entity_blind import entity_blind_features, target_first
from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE
from workbench.tasks.worded.prosqa.parsing import load_prosqa

OFFICIAL = Path(__file__).parents[2] / "data" / "worded" / "prosqa_excerpt.json"
SIZES = dict(n_train=60, n_valid=20, n_test=20, n_nodes=10, hops=[1, 2], lengths="balanced")


@pytest.fixture(scope="module")
def task():
    return build_task("prosqa", wording="arrows", **SIZES)


def test_no_question_is_in_two_splits(task):
    questions = [p.question for s in ("train", "valid", "test") for p in task.problems(s)]
    assert len(questions) == len(set(questions)) == 100


def test_splits_have_the_sizes_asked_for(task):
    assert [len(task.problems(s)) for s in task.split_names] == [60, 20, 20, 20]


def test_another_seed_draws_other_questions(task):
    other = build_task("prosqa", 1, wording="arrows", **SIZES)
    assert not set(task.graphs("train")) & set(other.graphs("train"))


def test_a_swapped_question_has_the_same_facts_and_the_other_answer(task):
    for plain, swapped in zip(task.problems("test"), task.problems("test_swapped"), strict=True):
        facts, asked = plain.question.split("?")
        assert swapped.question.split("?")[0] == facts
        assert set(swapped.question.split("?")[1].split()[1:]) == set(asked.split()[1:])
        assert swapped.answer != plain.answer


def test_the_deciding_token_is_the_concept_and_the_other_one_is_the_wrong_concept(task):
    batch = task.batch("test", 20)
    for row, graph in zip(range(20), (task.graphs("test")[n] for n in batch.number), strict=True):
        right, wrong = (task.vocabulary.words[t] for t in batch.candidates[row].tolist())
        assert (right, wrong) == (graph.names[graph.target], graph.names[graph.wrong])
        assert int(batch.answer[row]) == int(batch.candidates[row, 0])


def test_a_whole_solution_is_scored_right_and_the_wrong_concept_is_not(task):
    problem = task.problems("test")[0]
    graph = task.graphs("test")[0]
    said = task.answer_in(" ".join([*problem.steps, "###", problem.answer]))
    assert task.score(problem, said).right
    assert not task.score(problem, graph.names[graph.wrong]).right


def test_a_typed_question_is_read_and_its_answer_found_out(task):
    problem = task.typed("Tom lorpus . lorpus rompus . Sally yumpus . ? Tom yumpus rompus")
    assert problem.answer == "rompus"
    assert len(problem.steps) == 2
    graph = task.graphs("test")[0]
    rows = task.question(task.problems("test")[0].question)
    assert task.vocabulary.words[int(rows.answer)] == graph.names[graph.target]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Tom is a lorpus. Sally is a yumpus", "the question has no question mark at its end"),
        ("Tom is a lorpus. Is Sally a lorpus or yumpus?", "asks about 'Sally', of whom the facts"),
        ("Tom lorpus . Tom rompus . ? Tom lorpus rompus", "Tom is both of lorpus and rompus"),
        ("Tom lorpus . Sally yumpus . ? Tom yumpus rompus", "asks about 'rompus'"),
        ("Tom lorpus fast . Sally yumpus . ? Tom lorpus yumpus", "does not name two words"),
    ],
)
def test_a_typed_text_that_is_no_question_is_refused(task, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        task.typed(text)


def test_an_unknown_word_is_answered_with_the_nearest(task):
    with pytest.raises(ValueError, match="unknown word 'lorpsu'; did you mean"):
        task.question("Tom lorpsu . Sally yumpus . ? Tom lorpsu yumpus")


def test_official_files_stand_in_for_drawn_questions():
    names = {f"{split}_file": str(OFFICIAL) for split in ("train", "valid", "test")}
    official = build_task("prosqa", **names)
    assert official.problems("test")[0].question.endswith("?")
    assert official.problems("test_swapped")[0].answer != official.problems("test")[0].answer
    assert official.batch("test", 2).tokens.shape[0] == 2


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"nowhere\.json does not exist"):
        build_task("prosqa", train_file="nowhere.json").problems("train")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hops": [3]}, r"hops=\[3\] must be \[fewest, most\]"),
        ({"n_train": 0}, "n_train=0 must be at least 1"),
        ({"n_nodes": 5}, "n_nodes=5 must lie between 8"),
    ],
)
def test_sizes_that_cannot_be_are_refused(changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        build_task("prosqa", **changes)


def test_guesses_stand_beside_the_majority_rate(task):
    guesses = task.shortcuts("test")
    assert guesses["named first"] == task.majority_rate("test") >= 0.5
    assert all(0 <= share <= 1 for share in guesses.values())


@pytest.mark.parametrize("wording", ["sentences", "arrows"])
@pytest.mark.parametrize("layout", [COT, Layout("latent", 3, skipped=ALL)])
def test_features_are_read_from_the_question_however_it_is_laid_out(wording, layout):
    task = build_task("prosqa", n_train=2, n_valid=2, n_test=12, wording=wording)
    batch = task.laid_out(layout).batch("test", 12)
    graphs = [task.graphs("test")[number] for number in batch.number.tolist()]
    for name, values in entity_blind_features(graphs).items():
        assert task.local_features(batch)[name].tolist() == values.tolist()
    assert task.to_guess(batch).tolist() == target_first(graphs).tolist()


# -- official files beside drawn splits


def shape_of(graph):
    """A graph without its words."""
    return graph.edges, graph.root, graph.target, graph.wrong, graph.target_first


def test_a_file_beside_drawn_splits_takes_their_wording_and_words():
    plain = build_task("prosqa", wording="arrows", **SIZES)
    mixed = build_task(
        "prosqa", wording="arrows", test_file=str(OFFICIAL), valid_file=str(OFFICIAL), **SIZES
    )
    assert mixed.vocabulary.words == plain.vocabulary.words
    official = [p.facts["graph"] for p in load_prosqa(OFFICIAL)]
    for split in ("valid", "test"):
        assert [*map(shape_of, mixed.graphs(split))] == [*map(shape_of, official)]
        for problem in mixed.problems(split):
            graph = problem.facts["graph"]
            assert len({*graph.names}) == len(graph.names)
            assert {graph.names[node] for node in graph.people} <= {*PEOPLE}
            assert {*graph.names} <= {*PEOPLE, *CONCEPTS}
            assert "Every" not in problem.question and problem.answer in CONCEPTS
            assert mixed.score(problem, problem.answer).right
    assert mixed.graphs("test_swapped")[0].names == mixed.graphs("test")[0].names
    assert mixed.problems("train")[0] == plain.problems("train")[0]


def test_a_file_with_more_people_than_there_are_words_is_refused(monkeypatch):
    monkeypatch.setattr("workbench.tasks.worded.prosqa.PEOPLE", PEOPLE[:2])
    task = build_task("prosqa", wording="arrows", test_file=str(OFFICIAL), **SIZES)
    with pytest.raises(ValueError, match="are more than the 2 and 72 that there are words for"):
        task.problems("test")


def test_files_alone_keep_their_words_and_take_the_wording():
    files = {f"{split}_file": str(OFFICIAL) for split in ("train", "valid", "test")}
    told = load_prosqa(OFFICIAL)
    assert build_task("prosqa", **files).problems("test") == told
    arrows = build_task("prosqa", wording="arrows", **files).problems("test")
    assert [p.facts["graph"] for p in arrows] == [p.facts["graph"] for p in told]
    assert arrows[0].question.count("?") == 1 and "Every" not in arrows[0].question
    assert arrows[0].facts["neighbor_k"] == told[0].facts["neighbor_k"]


def test_a_file_is_asked_of_a_task_that_has_drawn_its_own():
    task = build_task("prosqa", wording="arrows", **SIZES)
    lengths = sorted(task.encode(p).n_tokens for p in task.from_file(OFFICIAL)[0])
    asked = task.with_file(OFFICIAL, lengths[3] + 3)
    assert len(asked.problems("file")) == 4 and asked.left_out["file"] == 2
    assert asked.left_out_why == {f"more tokens than the model's {lengths[3] + 3} positions": 2}
    assert len(asked.split("file")) == 4 and "file" not in task.__dict__.get("_problems", {})
    assert 0 < asked.majority_rate("file") <= 1 and asked.shortcuts("file")
    with pytest.raises(
        ConfigError, match=r"no problem of .* fits this run \(6 have more tokens than"
    ):
        task.with_file(OFFICIAL, 20)


def test_words_that_a_run_of_files_lacks_are_left_out(tmp_path):
    rows = json.loads(OFFICIAL.read_text())
    for name, part in (("one", rows[:1]), ("others", rows)):
        (tmp_path / f"{name}.json").write_text(json.dumps(part))
    files = {f"{split}_file": str(tmp_path / "one.json") for split in ("train", "valid", "test")}
    kept, left_out = build_task("prosqa", **files).from_file(tmp_path / "others.json")
    assert len(kept) + sum(left_out.values()) == len(rows)
    assert left_out["names that the task has no words for"] >= 1
