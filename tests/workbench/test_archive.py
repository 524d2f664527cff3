"""Zipped runs: what is right is unpacked as it was, anything else is refused and leaves nothing."""

import json
import zipfile

import pytest
import torch

from workbench.runs import load_run
from workbench.runs.archive import check_run, unpack_run
from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, read_tensors, write_tensors
from workbench.training import train

PARTS = ("recipe.yaml", "history.jsonl", "model.safetensors", "card.md", "steps/*.safetensors")


@pytest.fixture(scope="module")
def made(recipe, tmp_path_factory):
    return train(recipe(), tmp_path_factory.mktemp("runs") / "tiny", quiet=True)


@pytest.fixture
def files(made):
    """What a run's archive holds, by its path."""
    paths = [path for part in PARTS for path in made.glob(part)]
    return {path.relative_to(made).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def zipped(tmp_path):
    """Zip files; keys are their paths in the archive, or whole entries."""

    def zipped(files):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        return tmp_path / "x.zip"

    return zipped


@pytest.fixture
def refusal(zipped, tmp_path):
    """What is said to an archive of these files."""

    def refusal(files, name="mine"):
        with pytest.raises((FileError, ConfigError)) as error:
            unpack_run(zipped(files), tmp_path / "runs", name)
        assert not list((tmp_path / "runs").glob("*"))
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["x.zip"]
        return str(error.value)

    return refusal


@pytest.mark.parametrize("folder", ["", "tiny/", "steps/"])
def test_a_run_comes_out_as_it_went_in(made, files, zipped, tmp_path, folder):
    archive = zipped({folder + path: content for path, content in files.items()})
    run = load_run(unpack_run(archive, tmp_path / "runs", "mine"))
    assert (run.name, run.recipe.name, run.is_finished) == ("mine", "tiny", True)
    assert run.steps == load_run(made).steps and run.history == load_run(made).history
    for name, tensor in load_run(made).model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], tensor)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "path",
    [
        "model.pt",
        "steps/last.safetensors",
        "steps/../evil.safetensors",
        "../recipe.yaml",
        "/tmp/recipe.yaml",
        "C:\\recipe.yaml",
        "resume/state.safetensors",
        "recipe.yaml\n",
        "notes.md",
        "deep/er/recipe.yaml",
    ],
)
def test_what_is_no_file_of_a_run_is_refused_by_name(files, refusal, path):
    said = refusal(files | {path: b"x"})
    assert "is no file of a run" in said and repr(path)[1:-1].split("\\")[0] in said


def test_a_link_is_refused(files, refusal):
    link = zipfile.ZipInfo("card.md")
    link.external_attr = 0o120777 << 16
    del files["card.md"]
    assert "'card.md' is no file of a run" in refusal(files | {link: b"/etc/passwd"})


def test_a_path_that_stands_twice_is_refused(files, refusal):
    with pytest.warns(UserWarning, match="Duplicate name"):
        assert "'card.md' stands twice" in refusal(files | {zipfile.ZipInfo("card.md"): b"again"})


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_FILES"])
def test_what_is_too_large_is_refused_before_it_is_unpacked(files, refusal, monkeypatch, limit):
    monkeypatch.setattr(f"workbench.runs.archive.{limit}", 3)
    assert "too large for a run" in refusal(files)


def test_an_archive_without_a_recipe_is_no_run(files, refusal):
    del files["recipe.yaml"]
    assert "lacks recipe.yaml" in refusal(files)
    assert "lacks recipe.yaml" in refusal({})


def test_what_is_no_zip_is_refused(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK no zip")
    with pytest.raises(FileError, match="mine cannot be unpacked: File is not a zip file"):
        unpack_run(tmp_path / "x.zip", tmp_path / "runs", "mine")


def test_a_broken_archive_is_refused(files, zipped, tmp_path):
    archive = zipped(files)
    content = bytearray(archive.read_bytes())
    content[200] ^= 255  # within the first file
    archive.write_bytes(content)
    with pytest.raises(FileError, match="mine cannot be unpacked"):
        unpack_run(archive, tmp_path / "runs", "mine")


def test_a_wrong_recipe_is_refused(files, refusal):
    recipe = files["recipe.yaml"]
    assert "d_modle" in refusal(files | {"recipe.yaml": recipe.replace(b"d_model", b"d_modle")})
    yaml = b"!!python/object/apply:os.system ['true']"
    assert "is no valid YAML" in refusal(files | {"recipe.yaml": yaml})


def test_weights_that_are_not_the_recipes_are_refused_without_building_its_model(files, refusal):
    wide = files["recipe.yaml"].replace(b"d_mlp: 32", b"d_mlp: 1000000000000")
    assert "d_mlp=1,000,000,000,000 must be at most 1,000,000" in refusal(
        files | {"recipe.yaml": wide}
    )
    wide = files["recipe.yaml"].replace(b"d_mlp: 32", b"d_mlp: 1000000")
    assert "W_in is [16, 32]; the recipe's model has [16, 1000000]" in refusal(
        files | {"recipe.yaml": wide}
    )


def test_truncated_weights_and_pickles_are_refused(files, refusal):
    for path in ("model.safetensors", "steps/2.safetensors"):
        assert "truncated or no safetensors" in refusal(files | {path: files[path][:-8]})
        assert "truncated or no safetensors" in refusal(files | {path: b"\x80\x04."})


def test_a_broken_history_is_refused(files, refusal):
    broken = files["history.jsonl"].replace(b"{", b"", 1)
    assert "line 1 is not JSON" in refusal(files | {"history.jsonl": broken})


@pytest.mark.parametrize("name", ["", "../mine", "a/b", ".hidden", "mine\n"])
def test_a_name_that_is_no_folders_is_refused(files, refusal, name):
    assert "a run cannot be called" in refusal(files, name)


def test_a_run_of_that_name_stays(files, zipped, tmp_path):
    archive = zipped(files)
    first = unpack_run(archive, tmp_path / "runs", "mine")
    (first / "card.md").write_text("first")
    with pytest.raises(FileError, match="mine is there already; choose another name"):
        unpack_run(archive, tmp_path / "runs", "mine")
    assert (first / "card.md").read_text() == "first"


def test_every_saved_step_is_checked(made, tmp_path):
    import shutil

    folder = shutil.copytree(made, tmp_path / "copy")
    check_run(folder)
    path = folder / "steps" / "2.safetensors"
    weights = read_tensors(path)
    write_tensors(path, weights | {"more": torch.zeros(1)})
    with pytest.raises(FileError, match=r"^steps/2.safetensors holds more besides"):
        check_run(folder)
    assert json.loads((folder / "history.jsonl").read_text().splitlines()[0])["step"] == 0
