import json
import pickle
import shutil

import pytest
import torch

from workbench.runs import load_run, run_folders
from workbench.runs.evaluation import evaluate
from workbench.runs.overview import overview
from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, read_tensors, write_tensors
from workbench.training import train

TOKENS = torch.tensor([[1, 13, 14]])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of six steps, made once."""
    from workbench.settings.config import parse
    from workbench.settings.recipe import Recipe

    task = dict(n_entities=6, n_relations=4, out_degree=3, n_train=12, n_test_id=6, n_test_ood=6)
    model = dict(family="discoloop", d_model=16, n_heads=2, n_layers=1, d_mlp=32)
    training = dict(
        steps=6, batch_size=8, measure={"every": 3}, save={"dense_every": 2, "dense_until": 6}
    )
    data = {"name": "tiny", "task": {"name": "two_hop"} | task, "model": model}
    recipe = parse(Recipe, data | {"training": training}, "recipe tiny")
    return train(recipe, tmp_path_factory.mktemp("runs") / "tiny", quiet=True)


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of the run that a test may spoil."""
    return shutil.copytree(trained, tmp_path / "tiny")


def spoil(folder, **changes):
    """Change tensors of the final weights; None takes one out."""
    path = folder / "model.safetensors"
    weights = read_tensors(path) | changes
    write_tensors(path, {name: t for name, t in weights.items() if t is not None})


def refusal(folder):
    with pytest.raises(FileError) as error:
        _ = load_run(folder).model
    return str(error.value)


def test_a_run_knows_its_name_task_recipe_steps_and_history(folder):
    run = load_run(folder)
    assert run.name == folder.name
    assert run.recipe.name == "tiny"
    assert run.recipe.model["family"] == "discoloop"
    assert run.steps == [0, 2, 4, 6]
    assert run.is_finished
    assert [r["step"] for r in run.history[::4]] == [0, 3, 6]
    assert run.task.d_vocab == 17


def test_the_model_has_the_weights_that_were_written(folder):
    model = load_run(folder).model
    own, written = model.state_dict(), read_tensors(folder / "model.safetensors")
    assert own.keys() == written.keys()
    assert all(torch.equal(own[name], written[name]) for name in own)


def test_the_model_is_ready_to_be_asked(folder):
    model = load_run(folder).model
    assert not model.training
    assert model.to_tokens("A0 r0 r1").tolist() == TOKENS.tolist()


def test_the_measured_accuracy_is_the_models(folder):
    run = load_run(folder)
    batch = run.task.split("test_ood")
    said = run.model(**batch.inputs, logits_at=batch.read_at).argmax(-1)
    assert run.history[-1]["accuracy"] == pytest.approx(
        float((said == batch.answer).float().mean())
    )


def test_a_kept_step_has_the_weights_of_that_step(folder):
    run = load_run(folder)
    start, end = run.model_at(0), run.model_at(6)
    written = read_tensors(folder / "steps" / "0.safetensors")
    assert torch.equal(start.W_E, written["embed.W_E"].float())
    torch.testing.assert_close(end.W_E, run.model.W_E, atol=0.02, rtol=0.01)
    assert not torch.equal(start.W_E, end.W_E)


def test_a_step_that_was_not_kept_is_answered_with_the_nearest(folder):
    with pytest.raises(ConfigError, match=r"tiny keeps no step 5; the nearest it keeps is [46]"):
        load_run(folder).model_at(5)


def test_a_run_in_training_is_its_latest_kept_step(folder):
    (folder / "model.safetensors").unlink()
    run = load_run(folder)
    assert not run.is_finished
    assert torch.equal(run.model.W_E, run.model_at(6).W_E)
    assert evaluate(run)["step"] == 6
    assert run.loaded_step(None) == 6 and run.loaded_step(2) == 2


def test_a_run_without_weights_says_so(folder):
    (folder / "model.safetensors").unlink()
    shutil.rmtree(folder / "steps")
    assert refusal(folder).endswith("tiny holds no weights yet")


def test_a_run_whose_weights_are_truncated_is_named_in_the_overview(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileError, match="is truncated or no safetensors file"):
        overview(load_run(folder))


def test_a_missing_tensor_is_named(folder):
    spoil(folder, **{"ln_final.w": None})
    assert refusal(folder).endswith(
        "model.safetensors lacks ln_final.w; it belongs to another model"
    )


def test_an_unexpected_tensor_is_named(folder):
    spoil(folder, **{"recurrence.gate.w": torch.zeros(16)})
    assert "model.safetensors holds recurrence.gate.w besides" in refusal(folder)


def test_missing_and_unexpected_tensors_are_named_together(folder):
    spoil(folder, **{"ln_final.w": None, "ln_final.v": torch.zeros(16)})
    assert "lacks ln_final.w and holds ln_final.v besides" in refusal(folder)


def test_a_tensor_of_another_shape_is_named_with_both(folder):
    spoil(folder, **{"embed.W_E": torch.zeros(17, 8)})
    assert "embed.W_E is [17, 8]; the recipe's model has [17, 16]" in refusal(folder)


def test_truncated_weights_are_named(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    assert "model.safetensors is truncated or no safetensors file" in refusal(folder)


def test_a_pickle_for_weights_is_refused(folder):
    (folder / "model.safetensors").write_bytes(pickle.dumps({"embed.W_E": [1.0]}))
    assert "is truncated or no safetensors file" in refusal(folder)


def test_a_history_may_end_in_a_line_in_the_making(folder):
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"step": 9, "ac')
    assert load_run(folder).history[-1]["step"] == 6


def test_a_broken_line_within_the_history_is_named(folder):
    path = folder / "history.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"step"', *lines[2:]]))
    with pytest.raises(FileError, match=r"history\.jsonl, line 2 is not JSON"):
        _ = load_run(folder).history


def test_a_run_without_a_history_has_none(folder):
    (folder / "history.jsonl").unlink()
    assert load_run(folder).history == []


def test_a_recipe_that_was_tampered_with_is_refused(folder):
    path = folder / "recipe.yaml"
    path.write_text(path.read_text().replace("d_model:", "d_modle:"))
    with pytest.raises(ConfigError, match=r"has no field 'd_modle'; did you mean 'd_model'?"):
        _ = load_run(folder).model


def test_a_run_is_found_by_its_name_below_runs(folder, tmp_path, monkeypatch):
    folder.rename(folder.parent / "moved")
    (tmp_path / "runs").mkdir()
    (tmp_path / "moved").rename(tmp_path / "runs" / "tiny-two")
    monkeypatch.chdir(tmp_path)
    assert load_run("tiny-two").path.name == "tiny-two"
    assert "tiny-two" in run_folders()


def test_an_unknown_run_is_answered_with_the_nearest(folder, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs" / "tiny-run")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=r"no run 'tiny-ran'; did you mean 'tiny-run'?"):
        load_run("tiny-ran")


def test_a_folder_that_is_no_run_says_what_it_lacks(tmp_path):
    with pytest.raises(FileError, match=r"is no run: it lacks recipe\.yaml"):
        load_run(tmp_path)


def test_the_stored_recipe_says_what_made_the_run(folder):
    recipe = load_run(folder).recipe
    assert recipe.versions["torch"] == torch.__version__
    assert recipe.model["n_ctx"] == 3


def test_every_line_of_the_history_is_json(folder):
    for line in (folder / "history.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_name_that_the_hub_cannot_have_is_refused_in_a_sentence():
    with pytest.raises(FileError, match="no run 'hub:not a name': Repo id must"):
        load_run("hub:not a name")


def test_a_run_goes_to_the_hub_without_the_point_it_would_resume_from(folder, monkeypatch):
    import huggingface_hub

    from workbench.runs import load_run

    asked = {}

    class Hub:
        """Huggingface's client, without a network."""

        def create_repo(self, repo_id, exist_ok):
            asked["repo"] = repo_id

        def upload_folder(self, *, repo_id, folder_path, ignore_patterns):
            every = [path.relative_to(folder_path).as_posix() for path in folder_path.rglob("*")]
            kept = huggingface_hub.utils.filter_repo_objects(every, ignore_patterns=ignore_patterns)
            asked["files"] = set(kept)
            return f"https://hub/{repo_id}"

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    assert load_run(folder).push_to_hub("owner/name") == "https://hub/owner/name"
    assert asked["repo"] == "owner/name"
    assert {"recipe.yaml", "model.safetensors", "history.jsonl"} <= asked["files"]
    assert not [file for file in asked["files"] if file.startswith("resume/")]


def test_a_run_comes_from_the_hub_by_its_owner_and_name(folder, monkeypatch):
    import huggingface_hub

    from workbench.runs import load_run

    asked = []
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda name, allow_patterns: asked.append(name) or str(folder),
    )
    run = load_run("hub:owner/name")
    assert (run.path, run.name) == (folder, "hub:owner/name")
    assert asked == ["owner/name"]


def test_a_run_is_called_as_its_folder_is_however_one_comes_by_it(folder, monkeypatch):
    mine = folder.rename(folder.parent / "mine")
    (mine.parent / "linked").symlink_to(mine)
    monkeypatch.chdir(mine)
    assert load_run(".").name == load_run(mine).name == "mine"
    assert load_run("../linked").name == "linked"
    assert load_run(mine).recipe.name == evaluate(load_run(mine))["recipe"] == "tiny"


@pytest.fixture
def elsewhere(folder, tmp_path, monkeypatch):
    """A folder with one run, named by the environment; none ship."""
    (tmp_path / "shelf").mkdir()
    folder.rename(tmp_path / "shelf" / "tiny")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "none")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "shelf"))
    return tmp_path


def test_the_environment_names_a_folder_of_runs(elsewhere, monkeypatch):
    assert load_run("tiny").path == elsewhere / "shelf" / "tiny"
    shutil.copytree(elsewhere / "shelf", elsewhere / "shipped")
    monkeypatch.setattr("workbench.runs.SHIPPED", elsewhere / "shipped")
    assert load_run("tiny").path == elsewhere / "shelf" / "tiny"
    shutil.copytree(elsewhere / "shelf", elsewhere / "runs")
    assert load_run("tiny").path.parent.name == "runs"


def test_where_none_ship_one_is_told_where_they_were_looked_for_and_how_to_get_them(
    elsewhere, monkeypatch, capsys
):
    from workbench.cli import main

    sentence = "no run 'two-hop-small-looped'; looked in runs, .*shelf, .*none; this installation "
    with pytest.raises(FileError, match=sentence + ".*WORKBENCH_RUNS name it"):
        load_run("two-hop-small-looped")
    monkeypatch.delenv("WORKBENCH_RUNS")
    assert main(["runs"]) == 0
    assert capsys.readouterr().out.startswith("no run; looked in runs, ")
