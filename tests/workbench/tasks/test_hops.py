"""The symbolic tasks against walks and guesses made independently of them."""

from collections import Counter

import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.tasks import TASKS, build_task, task_from
from workbench.tasks.hops import HopTask

SMALL = dict(n_entities=6, n_relations=4, out_degree=3)
TWO = SMALL | dict(n_train=12, n_test_id=6, n_test_ood=6)
THREE = SMALL | dict(
    n_train_two=12,
    n_train_three=20,
    n_test_id_two=6,
    n_test_id_three=8,
    n_test_ood_two=6,
    n_test_ood_three=8,
)
SIZES = {"two_hop": TWO, "three_hop": THREE}


@pytest.fixture(scope="module", params=SIZES)
def task(request):
    return build_task(request.param, seed=0, **SIZES[request.param])


def questions(batch):
    """Rows as tuples of the tokens that are no padding."""
    rows = zip(batch.tokens.tolist(), batch.length.tolist(), strict=True)
    return [tuple(tokens[:length]) for tokens, length in rows]


def edges(task):
    """(subject, relation) → object, from the facts that the model is trained on."""
    facts = task.split("train_atom")
    return dict(zip(questions(facts), facts.answer.tolist(), strict=True))


def walked(task, graph):
    """Every question of every length of one graph with its answer, walked edge by edge."""
    known = {pair: b for pair, b in edges(task).items() if word(task, pair[0])[0] == graph}
    paths = {pair: (b,) for pair, b in known.items()}
    found = dict(paths)
    for _ in range(task.max_hops - 1):
        paths = {
            (*question, r): (*nodes, c)
            for question, nodes in paths.items()
            for (b, r), c in known.items()
            if b == nodes[-1]
        }
        found |= paths
    return found


def word(task, token):
    return task.vocabulary.words[token]


def test_every_registered_task_of_hops_has_its_sizes_here():
    assert SIZES.keys() == {name for name, cls in TASKS.items() if issubclass(cls, HopTask)}


def test_no_chain_stands_twice(task):
    rows = [
        row for split in ("train_id", "test_id", "test_ood") for row in questions(task.split(split))
    ]
    assert len(rows) == len(set(rows))


def test_every_fact_of_both_graphs_is_there(task):
    facts = edges(task)
    assert len(task.split("train_atom")) == len(facts) == 2 * 6 * 3
    assert Counter(word(task, subject)[0] for subject, _ in facts) == {"A": 18, "B": 18}


def test_every_entity_has_as_many_different_relations_as_its_degree(task):
    degree = Counter(subject for subject, _ in edges(task))
    assert set(degree.values()) == {3}


def test_the_graphs_share_no_entity(task):
    for (subject, _), target in edges(task).items():
        assert word(task, subject)[0] == word(task, target)[0]


def test_the_splits_have_the_sizes_asked_for(task):
    asked = {
        name: sum(v for k, v in SIZES[task_name(task)].items() if k.startswith(key))
        for name, key in [
            ("train_id", "n_train"),
            ("test_id", "n_test_id"),
            ("test_ood", "n_test_ood"),
        ]
    }
    assert {name: len(task.split(name)) for name in asked} == asked


def task_name(task):
    return next(name for name, cls in TASKS.items() if isinstance(task, cls))


@pytest.mark.parametrize("split", ["train_id", "test_id", "test_ood"])
def test_chains_are_walked_right(task, split):
    batch = task.split(split)
    found = walked(task, "B" if split == "test_ood" else "A")
    for row, question in enumerate(questions(batch)):
        *bridges, answer = found[question]
        assert int(batch.answer[row]) == answer
        assert [b for b in batch.bridge[row].tolist() if b >= 0] == bridges
        assert int(batch.hops[row]) == len(question) - 1


@pytest.mark.parametrize("split", ["train_atom", "train_id", "test_id", "test_ood"])
def test_answers_and_bridges_are_read_at_their_own_relation(task, split):
    batch = task.split(split)
    for row, hops in enumerate(batch.hops.tolist()):
        assert int(batch.read_at[row]) == hops == int(batch.length[row]) - 1
        absent = task.max_hops - hops
        assert batch.bridge_at[row].tolist() == [*range(1, hops)] + [-1] * absent
        assert (batch.bridge[row] >= 0).tolist() == [True] * (hops - 1) + [False] * absent


def test_facts_of_a_row_are_its_hops(task):
    known = edges(task)
    batch = task.split("train_id")
    for row, hops in enumerate(batch.hops.tolist()):
        facts = batch.facts[row].tolist()
        assert [known[s, r] for s, r, _ in facts[:hops]] == [o for *_, o in facts[:hops]]
        assert facts[hops:] == [[-1, -1, -1]] * (task.max_hops - hops)


def test_different_seeds_give_different_worlds(task):
    other = build_task(task_name(task), seed=1, **SIZES[task_name(task)])
    assert edges(other) != edges(task)


def test_the_same_draw_gives_the_same_rows(task):
    assert torch.equal(task.batch("test_id", 4, 7).tokens, task.batch("test_id", 4, 7).tokens)
    assert not torch.equal(task.batch("test_id", 4, 7).tokens, task.batch("test_id", 4, 8).tokens)


def test_a_batch_holds_different_rows_of_its_split(task):
    rows = questions(task.batch("test_id", 4))
    assert len(set(rows)) == 4 and set(rows) <= set(questions(task.split("test_id")))


def test_a_batch_larger_than_its_split_is_all_of_it(task):
    everything = questions(task.split("test_id"))
    assert sorted(questions(task.batch("test_id", 10_000))) == sorted(everything)


def test_a_batch_of_no_rows_is_refused(task):
    with pytest.raises(ValueError, match="n=0 must be at least 1"):
        task.batch("test_id", 0)


def test_an_unknown_split_is_answered_with_the_nearest(task):
    with pytest.raises(ValueError, match=r"no split 'test_odd'; did you mean 'test_ood'?"):
        task.batch("test_odd", 1)


def test_more_chains_than_there_are_is_refused_with_their_number():
    # 6 entities with 3 edges each: 6·3·3 = 54 chains of two hops
    task = build_task("two_hop", **TWO | {"n_train": 50})
    message = "56 two-hop chains of graph A are asked for, but there are only 54"
    with pytest.raises(ValueError, match=message):
        task.split("train_id")


def test_all_chains_there_are_can_be_asked_for():
    task = build_task("two_hop", **TWO | {"n_train": 48, "n_test_ood": 54})
    assert len(set(questions(task.split("test_ood")))) == 54


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_entitys": 3}, "task has no field 'n_entitys'; did you mean 'n_entities'?"),
        ({"out_degree": 5}, "out_degree=5 needs as many relations; n_relations is 4"),
        ({"n_entities": 0}, "n_entities=0 must be at least 1"),
        ({"n_train": 0}, "n_train=0 must be at least 1"),
    ],
)
def test_wrong_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError) as error:
        build_task("two_hop", **TWO | sizes)
    assert message in str(error.value)


def test_an_unknown_task_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no task 'two_hops'; did you mean 'two_hop'?"):
        build_task("two_hops")


def test_a_task_without_a_name_is_answered_with_all():
    with pytest.raises(ConfigError, match="task lacks the field 'name'; there is two_hop, three"):
        task_from({"n_entities": 3}, 0)


def test_a_typed_question_knows_what_the_tasks_own_rows_know(task):
    batch = task.split("test_ood")
    for row in range(len(batch)):
        text = task.vocabulary.decode(questions(batch)[row])
        typed, own = task.question(text), batch[row : row + 1]
        assert questions(typed) == questions(own)
        for field in ("answer", "hops", "bridge", "bridge_at", "read_at", "length", "facts"):
            assert torch.equal(getattr(typed, field), getattr(own, field)), field


def test_a_fact_is_a_question_too(task):
    (subject, relation), target = next(iter(edges(task).items()))
    typed = task.question(f"{word(task, subject)} {word(task, relation)}")
    assert int(typed.answer) == target
    assert (typed.bridge < 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the question is empty"),
        ("A1 r1 zzz", "unknown word 'zzz'"),
        ("A1", "'A1' has 0 relations; a question of this task has 1 to"),
        ("r1 r2", "'r1 r2' is no question; a question reads like 'A1 r2 r3'"),
        ("A1 A2", "'A1 A2' is no question"),
        ("<pad> r1", "'<pad> r1' is no question"),
        ("A1 r1 r1 r1 r1", "has 4 relations; a question of this task has 1 to"),
    ],
)
def test_what_is_no_question_is_refused(task, text, message):
    with pytest.raises(ValueError) as error:
        task.question(text)
    assert message in str(error.value)


def test_a_relation_that_an_entity_lacks_is_answered_with_those_it_has(task):
    has = {r for s, r in edges(task) if word(task, s) == "A1"}
    known = [word(task, r) for r in sorted(has)]
    lacks = next(r for r in ("r0", "r1", "r2", "r3") if r not in known)
    with pytest.raises(ValueError) as error:
        task.question(f"A1 {lacks}")
    assert str(error.value) == f"A1 has no relation {lacks}; it has {', '.join(known)}"


@pytest.mark.parametrize("split", ["train_atom", "train_id", "test_id", "test_ood"])
def test_shortcuts_are_the_best_guesses_from_part_of_the_question(task, split):
    everything = walked(task, "A") | walked(task, "B")
    views = {1: {"a": [0], "r1": [1]}}
    for hops in range(2, task.max_hops + 1):
        relations = ", ".join(f"r{n + 1}" for n in range(hops))
        views[hops] = {"a": [0], f"r{hops}": [hops], relations: [*range(1, hops + 1)]}
    right = {}
    for question in questions(task.split(split)):
        hops, answer = len(question) - 1, everything[question][-1]
        for view, places in views[hops].items():
            seen = [question[place] for place in places]
            alike = Counter(
                nodes[-1]
                for other, nodes in everything.items()
                if len(other) == len(question)
                and word(task, other[0])[0] == word(task, question[0])[0]
                and [other[place] for place in places] == seen
            )
            # ties are broken one way, so a guess's hits may differ; its expected hits may not
            best = max(alike.values())
            right.setdefault(f"answer given {view}", []).append((alike[answer] == best, best))
    found = task.shortcuts(split)
    assert found.keys() == right.keys()
    for view, guesses in right.items():
        assert found[view] <= sum(hit for hit, _ in guesses) / len(guesses)


def test_a_shortcut_over_every_chain_is_the_share_of_the_commonest_answers():
    # with every chain of B in the split, ties do not matter: each view's hits are its largest count
    task = build_task("two_hop", **TWO | {"n_test_ood": 54})
    by_view = {"a": {}, "r2": {}, "r1, r2": {}}
    for question, nodes in walked(task, "B").items():
        if len(question) == 3:
            for view, places in {"a": [0], "r2": [2], "r1, r2": [1, 2]}.items():
                seen = tuple(question[place] for place in places)
                by_view[view].setdefault(seen, Counter())[nodes[-1]] += 1
    for view, counters in by_view.items():
        hits = sum(max(counter.values()) for counter in counters.values())
        assert task.shortcuts("test_ood")[f"answer given {view}"] == pytest.approx(hits / 54)


def test_the_majority_rate_is_the_share_of_the_commonest_answer(task):
    answers = Counter(task.split("test_id").answer.tolist())
    wanted = max(answers.values()) / sum(answers.values())
    assert task.majority_rate("test_id") == pytest.approx(wanted)


def test_a_split_is_a_datasets_object_of_words(task):
    data = task.dataset("test_ood")
    assert len(data) == len(task.split("test_ood"))
    for row in data:
        typed = task.question(row["question"])
        assert row["answer"] == word(task, int(typed.answer))
        assert row["hops"] == int(typed.hops)
        assert len(row["bridges"]) == row["hops"] - 1


def test_all_splits_are_a_dataset_dict(task):
    assert {name: len(data) for name, data in task.datasets().items()} == {
        name: len(rows) for name, rows in task.splits.items()
    }
