"""Whatever a file or a command line holds, what comes of it is a result or a sentence of ours."""

import io
import json
import random
import shutil
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.edits import parse_edits
from workbench.runs import load_run
from workbench.runs.archive import unpack_run
from workbench.runs.history import read_history
from workbench.settings.errors import is_complaint
from workbench.settings.plain_json import json_lines, parse_json, read_text
from workbench.settings.plain_yaml import parse_yaml
from workbench.settings.recipe import load_recipe
from workbench.tasks.worded.gsm8k.sums import load_gsm8k
from workbench.tasks.worded.hotpotqa.paragraphs import load_hotpotqa
from workbench.tasks.worded.prosqa.parsing import load_prosqa

DATA = Path(__file__).parents[1] / "data" / "worded"
MANY = settings(max_examples=30, deadline=None, derandomize=True, database=None)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
HOSTILE = (
    "[" * 3_000,
    "{" * 3_000,
    '{"a":' * 3_000,
    "9" * 5_000,
    "[" + "9" * 5_000 + "]",
    "1e999",
    "NaN",
    "2024-13-45",
    "a: 2024-13-45",
    "a: 12:61:61",
    "a: !!python/object:os.system x",
    "&a [*a]",
    "\ufeff{}",
    "\x00",
    "",
    "- " * 4_000,
    "? " * 3_000,
    "a: " + "[" * 3_000,
    "\ud800",
)


def ours(ask, *args):
    """The result, or None where a sentence of ours is raised; anything else is raised again."""
    try:
        return ask(*args)
    except Exception as error:
        if not is_complaint(error):
            raise
        sentence = str(error)
    assert sentence and "\n" not in sentence
    return None


def mutated(whole, draw):
    """A file with some of its bytes changed, cut, doubled or exchanged for others."""
    data = bytearray(whole)
    for _ in range(draw.randint(1, 4)):
        at, to = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
        kind = draw.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = draw.randrange(256)
        elif kind == 1:
            del data[min(at, to) : min(at, to) + draw.choice((1, 3, 40, len(data)))]
        elif kind == 2:
            data[at:at] = data[min(at, to) : min(at, to) + draw.randint(1, 60)]
        elif kind == 3:
            hostile = draw.choice(HOSTILE).encode("utf-8", "surrogatepass")
            data[at:at] = hostile[: draw.choice((3, 40, 9_000))]
        else:
            data[at:at] = draw.choice((b"\xff\xfe", b"null", b"-", b"\n", b"[", b'"', b"{}", b":"))
    return bytes(data)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_data_or_a_sentence(text):
    ours(parse_json, text, "the text")
    ours(parse_yaml, text, "the text")
    ours(lambda: list(json_lines(text, "the text")))


@MANY
@given(st.text())
def test_any_text_is_data_or_a_sentence(text):
    ours(parse_json, text, "the text")
    ours(parse_yaml, text, "the text")
    ours(lambda: list(json_lines(text, "the text")))


@MANY
@given(st.binary(max_size=200))
def test_any_bytes_are_a_text_or_a_sentence(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any-bytes"
    path.write_bytes(data)
    ours(read_text, path)
    ours(read_history, path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_a_text_in_another_encoding_is_read_or_named(tmp_path, encoding):
    path = tmp_path / "prosqa.json"
    path.write_bytes((DATA / "prosqa_excerpt.json").read_text().encode(encoding))
    rows = ours(load_prosqa, path)
    assert (rows is None) == (encoding in ("utf-16", "utf-32"))


@MANY
@given(PLAIN)
def test_any_plain_data_is_edits_or_a_sentence(data):
    ours(parse_edits, data)
    ours(parse_edits, [data])
    ours(parse_edits, [{"do": "zero", "place": data}])
    ours(parse_edits, [{"do": "patch", "place": "hook_embed", "loops": data, "from_loop": data}])


@MANY
@given(PLAIN, st.sampled_from(["task", "model", "training", "seed", "name", "about", "versions"]))
def test_any_plain_data_in_a_recipe_is_a_recipe_or_a_sentence(tmp_path_factory, data, field):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    whole = {"name": "tiny", "task": {"name": "two_hop"}, "model": {"family": "looped"}}
    path.write_text(json.dumps(whole | {field: data}))
    ours(load_recipe, path)


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (load_gsm8k, "gsm8k_excerpt.jsonl"),
        (load_gsm8k, "gsm8k_augmented_excerpt.txt"),
        (load_hotpotqa, "hotpotqa_invented.json"),
        (load_prosqa, "prosqa_excerpt.json"),
    ],
)
def test_a_mutated_data_file_is_problems_or_a_sentence(tmp_path, load, name):
    draw, whole = random.Random(0), (DATA / name).read_bytes()
    for _ in range(60):
        path = tmp_path / name
        path.write_bytes(mutated(whole, draw))
        ours(load, path)


@pytest.fixture(scope="module")
def made(tmp_path_factory, recipe):
    """The folder of a run of six steps."""
    from workbench.training import train

    return train(recipe(), tmp_path_factory.mktemp("made") / "run", quiet=True)


def test_a_mutated_archive_is_a_run_or_a_sentence(made, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(made.rglob("*")):
            if path.is_file() and "resume" not in path.parts:
                archive.write(path, path.relative_to(made))
    draw, whole = random.Random(0), packed.getvalue()
    for number in range(60):
        ours(unpack_run, io.BytesIO(mutated(whole, draw)), tmp_path, f"mine{number}")


def test_a_mutated_run_is_read_or_answered_in_a_sentence(made, tmp_path):
    from workbench.runs.evaluation import evaluate
    from workbench.runs.overview import overview

    draw = random.Random(0)
    for number in range(20):
        folder = shutil.copytree(made, tmp_path / f"run{number}")
        name = draw.choice(("recipe.yaml", "history.jsonl", "history.jsonl", "model.safetensors"))
        (folder / name).write_bytes(mutated((folder / name).read_bytes(), draw))
        run = ours(load_run, folder)
        if run is not None:
            ours(overview, run)
            ours(evaluate, run)
        shutil.rmtree(folder)


def test_a_mutated_resume_point_is_taken_up_or_named(made, tmp_path, recipe):
    from workbench.training import train

    draw = random.Random(0)
    for number in range(8):
        folder = shutil.copytree(made, tmp_path / f"run{number}")
        (folder / "model.safetensors").unlink()
        name = draw.choice(("state.json", "state.safetensors"))
        path = folder / "resume" / name
        path.write_bytes(mutated(path.read_bytes(), draw))
        ours(lambda folder=folder: train(recipe(), folder, resume=True, quiet=True))
        shutil.rmtree(folder)


LONG = "x" * 5_000
WRONG = (
    ["evaluate", LONG],
    ["evaluate", "run", "--split", LONG],
    ["evaluate", "run", "--step", "99999999999999999999"],
    ["evaluate", "run", "--loops", "-3"],
    ["evaluate", "run", "--thoughts", "100000"],
    ["evaluate", "run", "--n", "0"],
    ["evaluate", "run", "--seed", "-1"],
    ["evaluate", "run", "--edits", "nowhere.json"],
    ["evaluate", "run", "--edits", LONG],
    ["evaluate", "run", "--edits", "\x00"],
    ["evaluate", "run", "--json", "nowhere/found.json"],
    ["evaluate", "run", "--json", "."],
    ["evaluate", "run", "--json", LONG],
    ["evaluate", "run", "--file", "nowhere.json"],
    ["evaluate", "run", "--device", "abacus"],
    ["evaluate", "\x00"],
    ["evaluate", ""],
    ["analyse", LONG, "run"],
    ["analyse", "logit_lens", "run", "--set", "rows"],
    ["analyse", "logit_lens", "run", "--set", f"{LONG}=1"],
    ["analyse", "logit_lens", "run", "--set", "rows=" + "[" * 3_000],
    ["analyse", "logit_lens", "run", "--out", "/proc/nowhere/x"],
    ["analyse", "logit_lens", "run", "--question", ""],
    ["analyse", "logit_lens", "run", "--question", LONG],
    ["analyse", "logit_lens", "run", "--loops", "1000000"],
    ["data", LONG],
    ["data", "two_hop", "--n", "-1"],
    ["data", "two_hop", "--seed", "-1"],
    ["data", "two_hop", "--set", "n_entities=100000000"],
    ["data", "two_hop", "--set", "n_train=100000000000"],
    ["data", "boolean", "--set", "train_depths=[100]"],
    ["data", "prosqa", "--set", "n_train=[1]"],
    ["data", "two_hop", "--set", f"n_train={'9' * 5_000}"],
    ["data", "two_hop", "--n", "1", "--out", "/proc/nowhere"],
    ["train", LONG],
    ["train", "tiny.yaml", "--plan", "--set", "task.name=3"],
    ["train", "tiny.yaml", "--plan", "--set", "task=3"],
    ["train", "tiny.yaml", "--plan", "--set", "seed=4294967296"],
    ["train", "tiny.yaml", "--plan", "--set", "seed=-1"],
    ["train", "tiny.yaml", "--plan", "--set", "model.n_layers=1000000"],
    ["train", "tiny.yaml", "--plan", "--set", "model.family=[]"],
    ["train", "tiny.yaml", "--plan", "--set", f"training.steps={10**30}"],
    ["train", "tiny.yaml", "--plan", "--set", "a" + ".a" * 3_000 + "=1"],
    ["train", "tiny.yaml", "--out", "tiny.yaml"],
    ["train", "tiny.yaml", "--out", "/proc/nowhere/x"],
    ["train", "tiny.yaml", "--out", LONG],
    ["train", "tiny.yaml", "--out", "\x00"],
)


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "run")
    shutil.copy(made / "recipe.yaml", tmp_path / "tiny.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", WRONG, ids=lambda line: " ".join(line)[:60].replace("\x00", "0"))
def test_a_wrong_command_line_ends_in_one_sentence(folder, line, capsys, monkeypatch):
    from workbench import cli

    monkeypatch.setattr(cli, "MOMENT", 1e6)  # how long it takes is no matter here
    device = ["--device", "cpu"] if line[0] in ("evaluate", "analyse") else []
    try:
        code = cli.main([*line, *([] if "--device" in line else device)])
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr().err
    assert code in (1, 2), said
    if code == 1:
        assert said.startswith(f"workbench {line[0]}: ") and said.count("\n") == 1
        assert len(said) < 2_000


@MANY
@given(
    st.lists(
        st.sampled_from(
            ["run", "two_hop", "logit_lens", "--n", "--seed", "--split", "--step", "--loops"]
        )
        | st.text(max_size=6)
        | st.integers(-3, 3).map(str),
        max_size=5,
    ),
    st.sampled_from(["evaluate", "analyse", "data", "runs"]),
)
def test_any_command_line_ends_in_a_result_or_a_sentence(made, words, verb):
    import contextlib

    from workbench.cli import CRASHED, main

    words = [str(made) if word == "run" else word for word in words]
    out = ["--out", str(made.parent / "out")] if verb == "analyse" else []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main([verb, *words, *out])
        except SystemExit as left:
            code = left.code
    assert code != CRASHED
