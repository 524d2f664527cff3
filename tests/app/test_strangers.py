"""Runs of other people: a broken one takes nothing else down, and none reads files."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest

from workbench.runs import STRANGER, load_run
from workbench.runs.archive import check_run, unpack_run
from workbench.settings.errors import is_complaint
from workbench.settings.files import FileError

APP = Path(__file__).parents[2] / "app" / "streamlit_app.py"
BROKEN = {
    "a history of steps alone": ("history.jsonl", b'{"step": 1}\n'),
    "a history of lists": ("history.jsonl", b"[1, 2]\n"),
    "a date as about": ("recipe.yaml", b"about: 2024-13-45\n"),
    "an empty recipe": ("recipe.yaml", b""),
    "a recipe in UTF-16": ("recipe.yaml", "name: x".encode("utf-16")),
    "a card in latin-1": ("card.md", "# é".encode("latin-1")),
    "weights of nothing": ("model.safetensors", b""),
}


def sentences(page):
    return [element.value for element in (*page.warning, *page.error, *page.info)]


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_one_bad_run_leaves_the_others_on_the_page(
    open_page, page_folder, monkeypatch, tmp_path, change
):
    folder = tmp_path / "runs" / "broken"
    shutil.copytree(page_folder / "runs" / "tiny-looped", folder)
    name, data = BROKEN[change]
    (folder / name).write_bytes(data)
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "runs")
    page = open_page()
    assert not page.exception
    assert len(page.dataframe[0].value) == 9
    chosen = open_page(run="broken")
    assert not chosen.exception


def test_the_first_page_opens_on_a_run_that_can_be_read(page_folder, monkeypatch, tmp_path):
    from streamlit.testing.v1 import AppTest

    shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "runs" / "good")
    shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "runs" / "bad")
    (tmp_path / "runs" / "bad" / "recipe.yaml").write_bytes(b"")
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    page = AppTest.from_file(APP, default_timeout=30).run()
    assert not page.exception
    assert page.selectbox(key="run").value == "good"


def test_a_listing_says_which_run_is_bad(page_folder, monkeypatch, tmp_path, capsys):
    from workbench.cli import main

    shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "runs" / "good")
    shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "runs" / "bad")
    (tmp_path / "runs" / "bad" / "recipe.yaml").write_bytes(b"\xff\xfe")
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "cannot be read: " in lines["bad"] and "looped" in lines["good"]


def packed(folder):
    """A run's folder as a zip."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "resume" not in path.parts:
                archive.write(path, path.relative_to(folder))
    return data


@pytest.mark.parametrize(
    "change", [c for c in BROKEN if "recipe" in BROKEN[c][0] or "history" in BROKEN[c][0]]
)
def test_a_broken_archive_is_refused(page_folder, tmp_path, change):
    folder = shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "broken")
    name, data = BROKEN[change]
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError) as error:
        unpack_run(packed(folder), tmp_path / "runs", "mine")
    assert is_complaint(error.value) and not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ("name: gsm8k\n  train_file: {secret}", "task.train_file"),
        ("name: prosqa\n  valid_file: {secret}", "task.valid_file"),
        ("name: prosqa\n  tokenizer: {secret}", "task.tokenizer"),
        ("name: gsm8k\n  hub: owner/name", "task.hub"),
    ],
)
def test_a_strangers_recipe_reads_no_file_of_the_server(page_folder, tmp_path, lines, field):
    secret = tmp_path / "secret"
    secret.write_text("what nobody may see")
    folder = shutil.copytree(page_folder / "runs" / "tiny-looped", tmp_path / "theirs")
    recipe = (folder / "recipe.yaml").read_text()
    start, _, rest = recipe.partition("task:\n")
    model = rest[rest.index("model:\n") :]
    task = "task:\n  " + lines.format(secret=secret) + "\n"
    (folder / "recipe.yaml").write_text(start + task + model)
    with pytest.raises(FileError) as error:
        unpack_run(packed(folder), tmp_path / "runs", "mine")
    assert field in str(error.value) and "may read nothing outside its folder" in str(error.value)
    assert "nobody" not in str(error.value)


def test_an_unpacked_run_is_marked_as_a_strangers_and_runs(page_folder, tmp_path):
    from workbench.runs.evaluation import evaluate

    folder = unpack_run(packed(page_folder / "runs" / "tiny-looped"), tmp_path / "runs", "mine")
    assert (folder / STRANGER).exists() and load_run(folder).is_a_strangers
    assert evaluate(load_run(folder), n=4)["n"] == 4
    check_run(folder)


def test_an_entry_that_states_less_than_it_holds_is_refused_before_it_is_written(
    page_folder, tmp_path
):
    data = packed(page_folder / "runs" / "tiny-looped")
    with zipfile.ZipFile(data) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files | {"card.md": b"0" * 20_000_000}).items():
            archive.writestr(name, content)
    raw = bytearray(bomb.getvalue())
    at = raw.rindex(b"PK\x01\x02", 0, raw.rindex(b"card.md"))
    raw[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(FileError, match="mine cannot be unpacked"):
        unpack_run(io.BytesIO(bytes(raw)), tmp_path / "runs", "mine")
    assert not list((tmp_path / "runs").iterdir())
