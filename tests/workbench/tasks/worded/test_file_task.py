"""Tasks whose problems come from files, in any words, and what is wrong with files."""

from pathlib import Path

import pytest

from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.worded.file_task import UNKNOWN, split_words
from workbench.tasks.worded.layout import Layout

DATA = Path(__file__).parents[3] / "data" / "worded"
AUGMENTED, OFFICIAL = str(DATA / "gsm8k_augmented_excerpt.txt"), str(DATA / "gsm8k_excerpt.jsonl")
HOTPOT = str(DATA / "hotpotqa_invented.json")


@pytest.fixture(scope="module")
def sums():
    return build_task("gsm8k", train_file=AUGMENTED, test_file=OFFICIAL)


def test_splits_are_those_that_have_a_file(sums):
    assert list(sums.split_names) == ["train", "test"]
    assert sums.default_split == "test"
    assert build_task("gsm8k", train_file=AUGMENTED).default_split == "train"


def test_as_many_rows_are_taken_as_asked_for_from_the_first_on():
    whole = build_task("gsm8k", train_file=AUGMENTED).problems("train")
    assert build_task("gsm8k", train_file=AUGMENTED, n_train=2).problems("train") == whole[:2]


def test_words_are_those_of_training_and_one_stands_for_all_others(sums):
    words = sums.vocabulary.words
    known = {w for p in sums.problems("train") for w in split_words(p.question)}
    assert known <= set(words)
    strange = sums.question("Zyzzyva quux 12?")
    text = sums.vocabulary.decode(strange.tokens[0].tolist())
    assert text.startswith(f"{UNKNOWN} {UNKNOWN} 12?")


def test_digits_and_marks_are_single_words():
    assert split_words("<<48/2=24>> ### 1.5<|end|>") == [
        *("<", "<", "4", "8", "/", "2", "=", "2", "4", ">", ">"),
        *("###", "1", ".", "5", "<|end|>"),
    ]


def test_a_row_in_the_words_of_a_tokenizer_says_question_steps_and_answer(gpt2):
    task = build_task("gsm8k", train_file=AUGMENTED, tokenizer=gpt2)
    problem = task.problems("train")[0]
    batch = task.lay_out("train", [0])
    text = task.vocabulary.decode(batch.tokens[0].tolist())
    assert text == "\n".join(
        [problem.question, *problem.steps, f"### {problem.answer}<|endoftext|>"]
    )
    thinking = task.lay_out("train", [0], Layout(n_fillers=2, skipped=10))
    given = task.vocabulary.decode(thinking.tokens[0, : int(thinking.prompt)].tolist())
    marks = "<|start-latent|><|latent|><|latent|><|end-latent|>"
    assert given == f"{problem.question}\n{marks}"


def test_an_answer_is_what_follows_the_last_mark(sums):
    problem = sums.problems("train")[0]
    assert sums.score(problem, sums.answer_in(f"1 + 1 ### 7 ### {problem.answer}")).right
    assert not sums.score(problem, sums.answer_in("### 7")).right


def test_the_commonest_answer_of_training_is_the_guess(sums):
    guesses = sums.shortcuts("test")
    assert guesses.keys() == {"commonest answer of training"}
    assert build_task("gsm8k", test_file=OFFICIAL).shortcuts("test").keys() == {"commonest answer"}


def test_paragraphs_stand_before_the_question_as_asked(gpt2):
    lengths = []
    for context in ("none", "supporting", "all"):
        task = build_task("hotpotqa", train_file=HOTPOT, context=context, tokenizer=gpt2)
        lengths.append(int(task.lay_out("train", [0]).prompt))
    assert lengths == sorted(set(lengths))


def test_problems_that_are_too_long_are_left_out_and_counted(gpt2):
    everything = build_task("hotpotqa", train_file=HOTPOT, tokenizer=gpt2)
    lengths = [e.n_tokens for e in everything.encoded("train")]
    most = sorted(lengths)[2]
    changes = dict(train_file=HOTPOT, tokenizer=gpt2, most_tokens=most)
    short = build_task("hotpotqa", **changes)
    kept = [n for n, length in enumerate(lengths) if length <= most]
    assert short.problems("train") == [everything.problems("train")[n] for n in kept]
    assert short.left_out == {"train": len(lengths) - len(kept)} and len(kept) < len(lengths)
    # As many as asked for are those that fit
    two = build_task("hotpotqa", n_train=2, **changes)
    assert two.problems("train") == short.problems("train")[:2]
    assert two.left_out == {"train": kept[1] + 1 - 2}
    with pytest.raises(ConfigError, match=r"all \d+ problems of train have more than 3 tokens"):
        build_task("hotpotqa", **changes | {"most_tokens": 3}).problems("train")


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("gsm8k", {}, "say where the problems are: train_file, test_file or hub"),
        ("gsm8k", {"train_file": "x.txt", "n_train": 0}, "n_train=0 must be at least 1"),
        ("gsm8k", {"train_fil": "x.txt"}, "'train_fil'; did you mean 'train_file'"),
        ("gsm8k", {"train_file": "x.txt", "most_tokens": 9}, "tokenizer 'words' is made as long"),
        ("gsm8k", {"train_file": "x.txt", "most_tokens": 0}, "most_tokens=0 must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(name, changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        build_task(name, **changes)


def test_a_split_without_a_file_is_named(sums):
    with pytest.raises(ValueError, match="no split 'valid'; there is test, train"):
        sums.problems("valid")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("sums.txt", '{"question": "1?"}', r"row 1 of .*sums\.txt has no \|\| between"),
        ("sums.jsonl", "1 + 1?||#### 2", r"row 1 of .*sums\.jsonl is not JSON"),
        ("sums.jsonl", '{"question": "1?", "answer": "1"}', r"row 1 of .* has no #### before"),
        ("sums.csv", "question,answer", r"sums\.csv ends in '\.csv'; "),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        build_task("gsm8k", train_file=str(path)).problems("train")


def test_an_empty_typed_question_is_refused(sums):
    with pytest.raises(ValueError, match="the question is empty; it needs at least one word"):
        sums.question("  ")


def test_a_tokenizer_without_an_end_is_named(endless):
    with pytest.raises(ConfigError, match=rf"tokenizer {endless}: .* no token for the end of a te"):
        build_task("gsm8k", train_file=AUGMENTED, tokenizer=endless).batch("train", 1)


def test_more_thoughts_than_the_context_holds_are_named(gpt2):
    from workbench.pretrained import from_pretrained
    from workbench.words.tokenizer import SPECIALS

    task = build_task("gsm8k", train_file=AUGMENTED, tokenizer=gpt2)
    model = from_pretrained(gpt2, "coconut", add_tokens=SPECIALS, n_ctx=64)
    rows = task.lay_out("train", [0], Layout(n_fillers=70))
    with pytest.raises(ValueError, match=r"row 0 has \d+ positions, 70 of them thoughts; the mod"):
        model(**rows.inputs)
