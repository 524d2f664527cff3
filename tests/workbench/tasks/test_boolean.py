"""Boolean expressions against Python's own reading of them, and the twins against counting."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.boolean.expressions import WORDS, nesting, truth_of

SIZES = dict(n_train=24, n_valid=6, n_test=20)
VERSIONS = ("paper", "matched")
PYTHON = {"T": " True ", "F": " False ", "!": " not ", "&": " and ", "|": " or "}


@pytest.fixture(scope="module")
def tasks():
    return {version: build_task("boolean", version=version, **SIZES) for version in VERSIONS}


@pytest.fixture(params=VERSIONS)
def task(request, tasks):
    return tasks[request.param]


@pytest.fixture
def matched(tasks):
    return tasks["matched"]


def texts(task, batch):
    return [row["question"] for row in task.examples(batch)]


def value(text):
    """What Python makes of an expression; its `not`, `and`, `or` bind in the same order."""
    return eval("".join(PYTHON.get(character, character) for character in text).strip())


def depth(text):
    levels = np.cumsum([(c == "(") - (c == ")") for c in text])
    return int(levels.max())


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_answer_is_what_python_makes_of_it(task, split):
    for row in task.examples(task.split(split)):
        assert row["answer"] == str(value(row["question"]))
        assert row["depth"] == depth(row["question"])


def test_operators_bind_in_their_order():
    for text in ("!T|T", "!F&F", "T|T&F", "F&F|T", "!(T|F)&F|!F", "(T|F&!T)&T"):
        assert build_task("boolean").question(text).answer.item() == value(text)


def test_splits_have_their_depths_and_sizes(task):
    depths = {"train": range(1, 9), "valid": (2, 4, 6, 8), "test": range(2, 15, 2)}
    assert list(task.splits) == list(depths)
    for split, wanted in depths.items():
        found = Counter(task.split(split).depth.tolist())
        assert found == dict.fromkeys(wanted, SIZES[f"n_{split}"])
    assert task.trained_difficulty == (1, 8)
    assert task.default_split == "test"


def test_splits_share_no_expression(task):
    found = {split: texts(task, batch) for split, batch in task.splits.items()}
    for split in ("valid", "test"):
        assert len(set(found[split])) == len(found[split])
    train, valid, test = (set(found[split]) for split in ("train", "valid", "test"))
    assert not (train & valid or train & test or valid & test)


def test_no_expression_is_longer_than_the_limit():
    depths = {key: [4] for key in ("train_depths", "valid_depths", "test_depths")}
    task = build_task("boolean", max_length=24, **depths, **SIZES)
    assert task.n_ctx == 24
    for batch in task.splits.values():
        assert batch.tokens.shape[1] <= 24 and (batch.length <= 24).all()


def test_expressions_are_drawn_as_published():
    task = build_task("boolean", n_train=2000, train_depths=[1], test_depths=[2], valid_depths=[2])
    found = texts(task, task.split("train"))
    sides = [side for text in found for side in text.strip("!()")]
    share = Counter(sides)
    constants = share["T"] + share["F"]
    # two atoms of 1 constant (3 of 4) or 2 (1 of 4): 2.5 constants an expression
    assert constants / len(found) == pytest.approx(2.5, abs=0.06)
    assert share["T"] / constants == pytest.approx(0.5, abs=0.03)
    assert share["&"] / (share["&"] + share["|"]) == pytest.approx(0.5, abs=0.03)
    # a quarter of the two atoms and a quarter of the wholes are negated
    assert sum(text.count("!") for text in found) / len(found) == pytest.approx(0.75, abs=0.06)
    assert sum(text.startswith("!") for text in found) / len(found) == pytest.approx(0.25, abs=0.04)


def test_the_other_side_is_shallow_by_weights_that_halve():
    task = build_task("boolean", n_train=2500, train_depths=[3], test_depths=[2], valid_depths=[2])
    pairs = Counter()
    for text in texts(task, task.split("train")):
        inner = text.removeprefix("!")[1:-1]
        level = np.cumsum([(c == "(") - (c == ")") for c in inner])
        parts = [[]]
        for character, here in zip(inner, level, strict=True):
            parts[-1].append((character, here))
            if here == 0 and character == ")":
                parts.append([])
        reached = [max((here for _, here in part), default=0) for part in parts]
        pairs[sorted(reached)[-2] if len(reached) > 1 else 0] += 1
    shares = [pairs[d] / 2500 for d in (0, 1, 2)]
    assert shares == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.04)


def test_rows_are_read_at_their_first_token(task):
    batch = task.split("test")
    for at in (batch.read_at, batch.source_at, batch.target_at):
        assert not at.any()
    assert (batch.tokens[:, 0] == 1).all() and task.vocabulary.words[:2] == ("<pad>", "<cls>")
    assert batch.bridge.shape == (len(batch), 0)
    assert task.answers == ("False", "True") and task.d_vocab == 9


def test_different_seeds_give_different_expressions(task):
    sizes = SIZES | {"valid_depths": [2], "train_depths": [2]}
    other = build_task("boolean", seed=1, version=task.cfg.version, **sizes)
    assert texts(other, other.split("test")) != texts(task, task.split("test"))


def pairs(task, split):
    batch = task.split(split)
    return batch[::2], batch[1::2]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_twins_differ_in_value_and_not_in_any_count_of_a_level(matched, split):
    one, other = pairs(matched, split)
    assert (one.answer + other.answer == 1).all()
    assert torch.equal(one.length, other.length) and torch.equal(one.depth, other.depth)
    for symbol in range(2, len(WORDS)):
        for level in range(15):
            count, same = (
                ((b.tokens.numpy() == symbol) & (nesting(b.tokens.numpy()) == level)).sum(1)
                for b in (one, other)
            )
            assert (count == same).all()


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_twins_have_the_same_local_features_and_pairs_of_neighbours(matched, split):
    one, other = pairs(matched, split)
    features = [matched.local_features(batch) for batch in (one, other)]
    for name, values in features[0].items():
        assert (values == features[1][name]).all(), name
    for text, twin in zip(texts(matched, one), texts(matched, other), strict=True):
        assert Counter(pairwise(text)) == Counter(pairwise(twin))


def test_all_features_together_say_nothing_of_matched_expressions(matched):
    features = {
        split: np.stack(list(matched.local_features(matched.split(split)).values()), 1)
        for split in ("train", "test")
    }
    trees = HistGradientBoostingClassifier(max_iter=20, early_stopping=False, random_state=0)
    trees.fit(features["train"], matched.split("train").answer.numpy())
    batch = matched.split("test")
    right = trees.predict(features["test"]) == batch.answer.numpy()
    for depth in batch.depth.unique().tolist():
        assert right[batch.depth.numpy() == depth].mean() == 0.5


def test_matched_expressions_of_depth_1_are_few_and_repeat_in_train_alone():
    depths = dict(train_depths=[1], valid_depths=[2], test_depths=[2])
    task = build_task("boolean", version="matched", n_train=500, n_valid=2, n_test=2, **depths)
    assert len(set(texts(task, task.split("train")))) <= 12
    task = build_task(
        "boolean",
        version="matched",
        n_train=2,
        n_valid=2,
        n_test=14,
        **depths | {"test_depths": [1]},
    )
    with pytest.raises(ValueError, match="14 different expressions of depth 1"):
        task.split("test")


@pytest.mark.parametrize("split", ["train", "test"])
def test_twins_are_the_same_in_their_outer_half_up_to_three_levels(matched, split):
    one, other = pairs(matched, split)
    level = nesting(one.tokens.numpy())
    outer = level <= np.minimum(one.depth.numpy() // 2, 3)[:, None]
    assert (one.tokens.numpy() == other.tokens.numpy())[outer].all()


def test_an_odd_number_of_rows_leaves_out_one_twin():
    depths = dict(train_depths=[1, 2, 3], valid_depths=[2], test_depths=[4])
    task = build_task("boolean", version="matched", n_train=5, n_valid=3, n_test=1, **depths)
    assert Counter(task.split("train").depth.tolist()) == {1: 5, 2: 5, 3: 5}


def test_outer_levels_settle_what_they_can():
    task = build_task("boolean")
    for text, settled in {
        "(T|(T&F))": 1,
        "(F&(T&F))": 0,
        "(F|(T&F))": -1,
        "!(T|(T&F))": 0,
        "(F|T|(T&F))": 1,
        "((T|F)&(T|F)|T)": 1,
        "((T|F)&F&(T|F))": 0,
        "T|(F)": 1,
    }.items():
        tokens = task.question(text).tokens.numpy()
        assert truth_of(tokens, 1).item() == settled, text
        assert truth_of(tokens, 2).item() == value(text)


def test_outer_levels_never_say_what_is_wrong(task):
    batch = task.split("test")
    for levels in range(5):
        found = truth_of(batch.tokens.numpy(), levels)
        settled = found >= 0
        assert (found == batch.answer.numpy())[settled].all()


def test_counting_and_outer_levels_say_nothing_of_twins(matched):
    for split in matched.splits:
        assert set(matched.shortcuts(split).values()) == {0.5}


def test_three_levels_settle_most_expressions_as_published():
    task = build_task("boolean", n_train=100, n_test=200, test_depths=[8, 10, 12], n_valid=1)
    batch = task.split("test")
    guess = task.guesses(batch)["outer half, at most 3 levels"]
    right = guess == batch.answer.numpy()
    # deeper than 5, 78 % are settled and half of the others guessed: 89 %
    assert right.mean() == pytest.approx(0.89, abs=0.04)
    assert task.best_shortcut("test") == pytest.approx(right.mean())


def test_a_typed_question_knows_what_the_tasks_own_rows_know(task):
    batch = task.split("test")[::7]
    for row, example in enumerate(task.examples(batch)):
        typed, own = task.question(example["question"]), batch[row : row + 1].trimmed()
        assert task.examples(typed) == [example]
        for name, known in vars(typed).items():
            assert torch.equal(known, getattr(own, name)), name


def test_spaces_in_a_question_do_not_matter():
    task = build_task("boolean")
    assert texts(task, task.question(" ! ( T & F ) ")) == ["!(T&F)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "the expression is empty; an expression reads like '!(T&F)|T'"),
        ("(T&x)", "unknown character 'x'; an expression has T F & | ! ( )"),
        ("(T&)", "'(T&)' does not parse: character 4, ')', stands where one of T F ! ( belongs"),
        ("TF", "'TF' does not parse: character 2, 'F', stands where one of & | ) belongs"),
        ("T)", "'T)' does not parse: character 2, ')', closes what was not opened"),
        ("(T&(F)", "'(T&(F)' does not parse: '(' at 1 is not closed"),
        ("T&", "'T&' does not parse: it ends where a value belongs"),
        ("T" + "&T" * 64, "the question takes 130 tokens with its <cls>; max_length is 128"),
    ],
)
def test_what_is_no_expression_is_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError) as error:
        build_task("boolean").question(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_train": 0}, "n_train=0 must be at least 1"),
        ({"test_depths": []}, "test_depths=[] must be one or more different depths from 1"),
        ({"train_depths": [1, 1]}, "train_depths=[1, 1] must be one or more different depths"),
        ({"version": "papers"}, "version"),
        ({"n_tests": 3}, "task has no field 'n_tests'; did you mean 'n_test'?"),
    ],
)
def test_wrong_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError) as error:
        build_task("boolean", **sizes)
    assert message in str(error.value)


def test_more_expressions_than_there_are_is_refused():
    task = build_task("boolean", test_depths=[1], n_test=600, valid_depths=[2], n_valid=1)
    with pytest.raises(ValueError, match="600 different expressions of depth 1"):
        task.split("test")


def test_local_features_are_numbers_of_each_row(task):
    batch = task.split("test")
    features = task.local_features(batch)
    assert {values.shape for values in features.values()} == {(len(batch),)}
    text = "!(T|(T&!F))"
    found = {name: int(of[0]) for name, of in task.local_features(task.question(text)).items()}
    assert (found["length"], found["number of T"], found["number of F"]) == (12, 2, 1)
    assert (found["begins with !"], found["begins with ("], found["ends with )"]) == (1, 0, 1)
    assert found["number of | on the outermost level"] == 1
    assert found["number of & on the outermost level"] == 0
    assert (found["number of T|"], found["number of !F"], found["number of F&"]) == (1, 1, 0)
