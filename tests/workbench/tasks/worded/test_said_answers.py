"""A right answer that is said in a task's own tokens counts as right, whatever the tokens are."""

from pathlib import Path

import pytest

from workbench.tasks import build_task
from workbench.tasks.worded.detokenize import join_words, split_words
from workbench.tasks.worded.encoding import ANSWER, telling_piece
from workbench.tasks.worded.problem import Problem, ProblemError

DATA = Path(__file__).parents[3] / "data" / "worded"
FILES = {
    "gsm8k": dict(train_file=str(DATA / "gsm8k_excerpt.jsonl")),
    "gsm8k augmented": dict(train_file=str(DATA / "gsm8k_augmented_excerpt.txt")),
    "hotpotqa": dict(train_file=str(DATA / "hotpotqa_invented.json")),
    "prosqa": dict(n_train=12, n_valid=4, n_test=4, n_nodes=10, hops=[3, 4]),
}
NAMES = ("zumpus", "zumpal", "zum", "brimpus", "Tom", "Bob")


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory):
    """The folder of a tokenizer that marks blanks, with single characters and some whole names."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [
        "<unk>",
        "</s>",
        "▁",
        "\n",
        *(chr(code) for code in range(33, 127)),
        "▁zum",
        "pus",
        "pal",
    ]
    scores = [0.0, 0.0, *(-10.0 for _ in pieces[2:-3]), -2.0, -2.0, -2.0]
    made = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=0))
    made.normalizer = normalizers.Sequence([normalizers.Replace(" ", "▁")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    folder = tmp_path_factory.mktemp("sentencepiece")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>")
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": 110}')
    return str(folder)


@pytest.fixture
def tokenizers(gpt2, sentencepiece):
    return {"words": "words", "bytes": gpt2, "sentencepiece": sentencepiece}


def task_of(name, tokenizer):
    return build_task(name.split()[0], **FILES[name], tokenizer=tokenizer)


@pytest.mark.parametrize("kind", ["words", "bytes", "sentencepiece"])
@pytest.mark.parametrize("name", FILES)
def test_the_right_answer_said_in_tokens_is_right(name, kind, tokenizers):
    task = task_of(name, tokenizers[kind])
    for split in task.split_names:
        for problem in task.problems(split):
            said = task.vocabulary.decode(task.encode(problem).answer)
            assert task.score(problem, task.answer_in(said)).right, (said, problem.answer)


def test_a_number_is_all_of_its_digits():
    task = task_of("gsm8k", "words")
    problem = Problem("How many?", (), "18")
    said = [task.vocabulary.decode(task.vocabulary.encode(n)) for n in ("8", "1 8", "13")]
    assert [task.score(problem, text).right for text in said] == [False, True, False]
    assert not task.score(Problem("How many?", (), "3"), said[2]).right
    assert task.score(Problem("How many?", (), "-3"), "falls to - 3").right


@pytest.mark.parametrize("answer", ["twenty-one", "U.S.", "1,250", "don't", "AT&T", "a b, c"])
def test_words_with_signs_in_them_are_right_when_said(answer):
    task = task_of("hotpotqa", "words")
    said = join_words(split_words(answer))
    score = task.score(Problem("Who?", (), answer), said)
    assert (score.right, score.f1) == (True, 1.0)


def test_an_unknown_word_is_never_the_right_one():
    task = task_of("hotpotqa", "words")
    problem = Problem("Where?", (), "Zyzzyva")
    assert not task.score(problem, task.vocabulary.decode(task.encode(problem).answer)).right


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("1 , 250 . 5", "1,250.5"),
        ("It falls to - 3", "It falls to -3"),
        ("10 - 3 = 7", "10-3=7"),
        ("don ' t ( U . S . )", "don't (U.S.)"),
        ("it ends . So", "it ends. So"),
        ("### 18", "### 18"),
    ],
)
def test_words_are_joined_as_people_write_them(text, joined):
    tokens = split_words(text)
    assert join_words(tokens) == joined
    assert split_words(joined) == tokens


@pytest.mark.parametrize("gold", ["5 to 7", "none", "3 5", "1,2"])
def test_a_gold_answer_that_is_not_one_number_is_refused_with_its_row(gold, tmp_path):
    path = tmp_path / "sums.txt"
    path.write_text(f"1 and 1?||<<1+1=2>> #### 2\nHow many?||<<1+1=2>> #### {gold}\n")
    with pytest.raises(ProblemError, match=r"row 2 of .* is not one number"):
        build_task("gsm8k", train_file=str(path)).problems("train")


@pytest.mark.parametrize("kind", ["words", "bytes", "sentencepiece"])
def test_an_answer_is_read_where_it_parts_from_the_wrong_one(kind, tokenizers):
    task = task_of("prosqa", tokenizers[kind])
    vocabulary = task.vocabulary
    for problem in task.problems("test"):
        encoded = task.encode(problem)
        _before, right, wrong = task.decides(problem)
        other = vocabulary.encode(f"{ANSWER} {problem.answer.replace(right, wrong)}")
        assert encoded.answer[: encoded.decides] == other[: encoded.decides]
        assert encoded.candidates == (encoded.answer[encoded.decides], other[encoded.decides])
        assert len({*encoded.candidates}) == 2


def test_names_that_begin_alike_part_at_their_first_other_piece(sentencepiece):
    task = task_of("prosqa", sentencepiece)
    ids = task.vocabulary.encode("### zumpus")
    assert [task.vocabulary.words[i] for i in ids[-2:]] == [" zum", "pus"]
    for right, wrong, piece in (("zumpus", "zumpal", "pus"), ("zumpus", "zum", "pus")):
        problem = named(task, right, wrong)
        encoded = task.encode(problem)
        assert task.vocabulary.words[encoded.candidates[0]] == piece
    ends = task.encode(named(task, "zum", "zumpus")).candidates[0]
    assert task.vocabulary.words[ends] == "."


def named(task, right, wrong):
    """A problem of the task with its two concepts named anew."""
    from dataclasses import replace

    from workbench.tasks.worded.prosqa.parsing import prosqa_problem

    graph = task.graphs("test")[0]
    names = list(graph.names)
    names[graph.target], names[graph.wrong] = right, wrong
    return prosqa_problem(replace(graph, names=tuple(names)), task.cfg.wording)


def test_a_bridge_is_the_piece_that_tells_it_from_the_other_names(sentencepiece, gpt2):
    task = task_of("prosqa", sentencepiece)
    problem = named(task, "zumpus", "zumpal")
    names = task.names(problem)
    assert task.vocabulary.words[telling_piece(task.vocabulary, "zumpus", names)] == "pus"
    bytes_of = task_of("prosqa", gpt2)
    for problem in bytes_of.problems("test"):
        names = bytes_of.bridges(problem)
        blanks = [bytes_of.vocabulary.words[b] for b in bytes_of.encode(problem).bridges]
        assert len(names) == len(blanks)
        assert all(piece.strip() for piece in blanks)


def test_the_answer_of_a_sum_is_not_read_at_a_lone_blank(sentencepiece):
    task = task_of("gsm8k", sentencepiece)
    for problem in task.problems("train"):
        encoded = task.encode(problem)
        assert task.vocabulary.words[encoded.candidates[0]].strip() == problem.answer[0]


@pytest.mark.parametrize("kind", ["words", "bytes", "sentencepiece"])
@pytest.mark.parametrize("special", ["<|latent|>", "<|pause|>", "<|start-latent|>"])
def test_text_of_data_is_never_a_special_token(special, kind, tokenizers):
    task = task_of("gsm8k", tokenizers[kind])
    with pytest.raises(ProblemError, match="stands for a special token"):
        task.encode(Problem(f"What is {special} here?", (), "5"))


@pytest.mark.parametrize("kind", ["words", "bytes", "sentencepiece"])
@pytest.mark.parametrize("name", FILES)
def test_a_printed_question_can_be_asked_again(name, kind, tokenizers):
    task = task_of(name, tokenizers[kind])
    for layout in (task.layout, task.layout.with_fillers(2)):
        laid = task.laid_out(layout)
        batch = laid.batch(laid.default_split, 3)
        for row, example in enumerate(laid.examples(batch)):
            again = laid.question(example["question"])
            given = batch.tokens[row, : int(batch.prompt[row])].tolist()
            assert again.tokens[0, : int(again.prompt[0])].tolist() == given
