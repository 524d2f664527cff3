"""Stories of kinship against a solver of their own, and the matched ones against counting."""

import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.kinship import solve
from workbench.tasks.kinship.people import GENERATIONS, NAMES, RELATIONS, Fact, kin, kinship
from workbench.tasks.kinship.people import read_facts as read_story
from workbench.tasks.kinship.people import way as shortest

SIZES = dict(n_train=60, n_valid=10, n_test=40)
VERSIONS = ("paper", "family", "matched")
SAID = re.compile(r"(\w+) is the (\w+) of (\w+)")
CHAIN = "Ada is the parent of Ben . Ben is the parent of Cora ."


@pytest.fixture(scope="module")
def tasks():
    return {version: build_task("kinship", version=version, **SIZES) for version in VERSIONS}


@pytest.fixture(params=VERSIONS)
def task(request, tasks):
    return tasks[request.param]


@pytest.fixture
def matched(tasks):
    return tasks["matched"]


def told(text):
    """Facts and query as triples of words."""
    *facts, query = SAID.findall(text)
    return facts, query


def walks(facts, start):
    """Every way from a person along facts, each person once: (person, generations above start)."""
    ways = [[(start, 0)]]
    for way in ways:
        person, above = way[-1]
        for one, relation, other in facts:
            for here, there, up in ((one, other, -1), (other, one, 1)):
                if here == person and all(there != passed for passed, _ in way):
                    ways.append([*way, (there, above + up * GENERATIONS[relation])])
    return ways


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_answer_is_what_one_way_of_facts_says(task, split):
    for row in task.examples(task.split(split)):
        facts, (one, relation, other) = told(row["question"])
        ways = [way for way in walks(facts, one) if way[-1][0] == other]
        assert len(ways) == 1 and len(ways[0]) - 1 == row["depth"]
        generations = -ways[0][-1][1]
        assert row["answer"] == ("yes" if generations == GENERATIONS[relation] else "no")
        asked = Fact(one, GENERATIONS[relation], other)
        read = [Fact(a, GENERATIONS[r], b) for a, r, b in facts]
        assert solve(read, asked) == (row["answer"] == "yes")


@pytest.mark.parametrize("split", ["train", "test"])
def test_chains_turn_once_at_most(task, split):
    order = ["child", "parent"] if task.cfg.version == "family" else ["parent", "child"]
    for row in task.examples(task.split(split)):
        facts, (one, _, other) = told(row["question"])
        step = {fact[0]: fact for fact in facts}
        relations = []
        while one != other:
            _, relation, one = step[one]
            relations.append(relation)
        assert relations == sorted(relations, key=order.index)


def test_false_queries_are_off_by_2_or_4_within_12(task):
    off = Counter()
    for row in task.examples(task.split("test")):
        facts, (one, relation, other) = told(row["question"])
        read = [Fact(a, GENERATIONS[r], b) for a, r, b in facts]
        off[GENERATIONS[relation] - kinship(read, one, other).generations] += 1
    assert set(off) == {0, -4, -2, 2, 4} and off[0] == len(task.split("test")) // 2


def test_distractors_are_on_other_people():
    task = build_task("kinship", **SIZES)
    relations, numbers = Counter(), set()
    for row in task.examples(task.split("test")):
        facts, (one, _, _) = told(row["question"])
        chain = {person for way in walks(facts, one) for person, _ in way}
        others = [fact for fact in facts if fact[0] not in chain]
        assert len(chain) == row["depth"] + 1
        assert len({frozenset((a, b)) for a, _, b in others}) == len(others)
        numbers.add(len(others))
        relations.update(relation for _, relation, _ in others)
    assert numbers <= {1, 2, 3, 4} and {2, 3, 4} <= numbers  # a pair drawn twice is told once
    share = [relations[r] / relations.total() for r in ("parent", "child", "sibling")]
    assert share == pytest.approx([1 / 3] * 3, abs=0.1)


def test_facts_are_shuffled():
    task = build_task("kinship", n_train=400)
    batch = task.split("train")
    places = task.local_features(batch)["place of the fact on the first person"]
    at_depth_2 = places[(batch.depth == 2).numpy()]
    assert set(at_depth_2.tolist()) == set(range(6))


def test_splits_have_their_depths_and_sizes(task):
    depths = {"train": range(2, 6), "valid": range(2, 6), "test": range(2, 10)}
    assert list(task.splits) == list(depths)
    for split, wanted in depths.items():
        batch = task.split(split)
        assert Counter(batch.depth.tolist()) == dict.fromkeys(wanted, SIZES[f"n_{split}"])
        assert task.majority_rate(split) == 0.5
    assert task.trained_difficulty == (2, 5)


def test_no_two_rows_are_equal(task):
    rows = [row["question"] for batch in task.splits.values() for row in task.examples(batch)]
    assert len(set(rows)) == len(rows)


def test_positions_asked_about_hold_the_two_names(task):
    batch = task.split("test")
    for row, example in enumerate(task.examples(batch)):
        _, (one, _, other) = told(example["question"])
        words = [task.vocabulary.words[token] for token in batch.tokens[row].tolist()]
        assert words[int(batch.source_at[row])] == one
        assert words[int(batch.target_at[row])] == other
        assert words[0] == "<cls>" and words[int(batch.length[row]) - 1] == "<sep>"
        assert words[int(batch.length[row]) :].count("<pad>") == words.count("<pad>")
    assert not batch.read_at.any() and batch.bridge.shape[1] == 0
    assert {"source_at", "target_at"} < batch.inputs.keys()


def test_the_vocabulary_is_as_large_as_the_papers():
    task = build_task("kinship")
    assert task.d_vocab == 54 == 3 + len(NAMES) + len(RELATIONS) + 6
    assert (len(NAMES), len(RELATIONS), GENERATIONS["sibling"]) == (20, 25, 0)
    assert sorted(GENERATIONS.values()) == list(range(-12, 13))
    assert task.answers == ("no", "yes")


def test_the_readout_is_chosen():
    assert build_task("kinship").readout == "cls"
    assert build_task("kinship", readout="entities").readout == "entities"


def test_different_seeds_give_different_stories(task):
    other = build_task("kinship", seed=1, version=task.cfg.version, **SIZES)
    assert not torch.equal(other.batch("test", 9).tokens, task.batch("test", 9).tokens)


def test_counting_reaches_what_the_paper_reaches_on_its_own_stories():
    task = build_task("kinship", n_train=5000, n_test=2000)
    batch = task.split("test")
    right = task.guesses(batch)["counts of relations, query"] == batch.answer.numpy()
    found = [right[(batch.depth == depth).numpy()].mean() for depth in range(2, 10)]
    # standard error at most 0.011; the deepest have counts that the train split never shows
    assert found[:4] == pytest.approx([0.857, 0.838, 0.826, 0.818], abs=0.035)
    assert found[6:] == [0.5, 0.5]
    rule = task.guesses(batch)["parents less children near the query"] == batch.answer.numpy()
    assert rule.mean() == pytest.approx(0.755, abs=0.02)


@pytest.mark.parametrize("knows_depth", [False, True])
def test_counting_says_nothing_of_matched_stories(knows_depth):
    task = build_task("kinship", version="matched", n_train=2000, n_test=1000)
    names = ("number of parents", "number of children", "number of siblings", "query")
    seen, answers = {}, {}
    for split in ("train", "test"):
        batch = task.split(split)
        features = task.local_features(batch)
        columns = [features[name] for name in names]
        columns += [batch.depth.numpy()] if knows_depth else []
        seen[split] = list(zip(*(column.tolist() for column in columns), strict=True))
        answers[split] = batch.answer.numpy()
    ayes, looks = Counter(), Counter(seen["train"])
    for look, answer in zip(seen["train"], answers["train"].tolist(), strict=True):
        ayes[look] += answer
    guess = np.array([2 * ayes[look] > looks[look] for look in seen["test"]])
    right = guess == answers["test"]
    for depth in range(2, 10):
        hits = right[(task.split("test").depth == depth).numpy()]
        margin = 1.96 * (0.25 / len(hits)) ** 0.5
        assert abs(hits.mean() - 0.5) <= margin


def test_matched_stories_look_alike_to_whoever_follows_no_fact(matched):
    for split in matched.splits:
        batch = matched.split(split)
        features = matched.local_features(batch)
        deep = (batch.depth[::2] > 2).numpy()
        assert (batch.answer[::2] == 1).all() and (batch.answer[1::2] == 0).all()
        for name, values in features.items():
            on = name.startswith("fact on")  # at depth 2 the two facts are all there is to follow
            rows = deep if on else np.ones_like(deep)
            assert (values[::2] == values[1::2])[rows].all(), name


def test_matched_stories_name_the_same_people_in_the_same_order(matched):
    relations = {"parent", "child", "sibling"}
    for row in zip(*(iter(matched.examples(matched.split("test"))),) * 2, strict=True):
        one, other = (example["question"].split() for example in row)
        differ = [{a, b} for a, b in zip(one, other, strict=True) if a != b]
        assert differ and all(words <= relations for words in differ)


def test_shortcuts_of_matched_stories_are_at_chance_from_depth_3():
    task = build_task("kinship", version="matched", **SIZES | {"n_train": 500})
    for split in task.splits:
        batch = task.split(split)
        deep = (batch.depth > 2).numpy()
        for rule, guess in task.guesses(batch).items():
            assert (guess == batch.answer.numpy())[deep].mean() == 0.5, rule


def test_every_depth_that_is_accepted_can_be_drawn():
    for version, depth in product(VERSIONS, range(1, 13)):
        depths = dict(train_depths=[depth], valid_depths=[depth], test_depths=[depth])
        task = build_task("kinship", version=version, **depths, **SIZES)
        assert max(int(batch.length.max()) for batch in task.splits.values()) <= 128


def test_a_typed_question_knows_what_the_tasks_own_rows_know(task):
    batch = task.split("test")[::7]
    for row, example in enumerate(task.examples(batch)):
        typed, own = task.question(example["question"]), batch[row : row + 1].trimmed()
        assert task.examples(typed) == [example]
        for name, known in vars(typed).items():
            assert torch.equal(known, getattr(own, name)), name


def test_stops_need_no_space_before_them():
    task = build_task("kinship")
    text = f"{CHAIN} query : Ada is the grandparent of Cora"
    close = text.replace(" .", ".").replace(" :", ":") + "."
    assert task.examples(task.question(close)) == task.examples(task.question(text))
    assert task.examples(task.question(text))[0]["answer"] == "yes"


def test_a_sibling_is_of_the_same_generation():
    facts = [Fact("Ada", 1, "Ben"), Fact("Cora", 0, "Ada"), Fact("Dan", -2, "Cora")]
    assert kinship(facts, "Cora", "Ben") == (1, 2)
    assert kinship(facts, "Dan", "Ben") == (-1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "the question is empty; a question ends like 'query : Ada is the grandparent"),
        (CHAIN, "there is no query at the end; a question ends like 'query : Ada is"),
        (
            f"{CHAIN} query : Ada is the parent of Corra",
            "unknown name 'Corra'; did you mean 'Cora'?",
        ),
        (
            f"{CHAIN} query : Ada is the parnt of Cora",
            "unknown relation 'parnt'; did you mean 'parent'",
        ),
        (f"Ada likes Ben . {CHAIN} query : Ada is the parent of Ben", "unknown word 'likes' in"),
        (f"Ada is Ben . {CHAIN} query : Ada is the parent of Ben", "'Ada is Ben' is none; a fact"),
        (f"{CHAIN} query : Ada is the parent of Dan", "no fact mentions Dan; there is Ada, Ben"),
        (f"{CHAIN} query : Ada is the parent of Ada", "is about one person twice"),
        (
            f"{CHAIN} Dan is the child of Ella . query : Ada is the parent of Dan",
            "no facts lead from Ada to Dan",
        ),
        (
            f"{CHAIN} Ada is the child of Cora . query : Ada is the parent of Ben",
            "the facts contradict each other on",
        ),
        (
            "Ada is the parent of Ben . " * 17 + "query : Ada is the parent of Ben",
            "the question takes 129 tokens with its <cls>; max_length is 128",
        ),
    ],
)
def test_what_is_no_question_is_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError) as error:
        build_task("kinship").question(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"test_depths": [13]},
            "depth 13 does not fit 20 people, 12 generations and max_length=128",
        ),
        ({"max_length": 60}, "depth 6 does not fit 20 people, 12 generations and max_length=60"),
        ({"readout": "pair"}, "readout"),
        ({"n_valid": 0}, "n_valid=0 must be at least 1"),
    ],
)
def test_wrong_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError) as error:
        build_task("kinship", **sizes)
    assert message in str(error.value)


# -- what a real family would say


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([1, 1], "line"),
        ([-1], "line"),
        ([1, -1], "siblings"),
        ([1, 1, -1], "collateral"),  # an uncle
        ([-1, 1], "no kin"),  # two parents of one child
        ([-1, -1, 1], "no kin"),
    ],
)
def test_kin_as_a_real_family_has_it(steps, kind):
    assert kin(steps) == kind


def test_published_chains_turn_at_a_common_descendant_and_those_of_family_at_an_ancestor(tasks):
    turns = {"paper": {"no kin"}, "matched": {"no kin"}, "family": {"siblings", "collateral"}}
    for version, turned in turns.items():
        found = tasks[version].kin("test")
        assert {kind for kind, n in found.items() if n} == {"line"} | turned, version
        assert sum(found.values()) == int(tasks[version].split("test").answer.sum())


def test_the_family_version_asks_what_the_papers_does(tasks):
    rows = {v: tasks[v].examples(tasks[v].split("test")) for v in ("paper", "family")}
    for ours, published in zip(rows["family"], rows["paper"], strict=True):
        facts, query = read_story(ours["question"])
        steps = shortest(facts, query.one, query.other)
        assert steps == sorted(steps, reverse=True)
        assert (
            query == read_story(published["question"])[1] and ours["answer"] == published["answer"]
        )
