import json
import math

import pytest
import torch

from workbench.models import build_model, model_config
from workbench.settings.config import ConfigError
from workbench.settings.files import read_tensors
from workbench.settings.recipe import SaveConfig
from workbench.training import Trainer, TrainingDiverged, train
from workbench.training.resolve import resolve
from workbench.training.trainer import cut_history, is_saved

KEYS = {
    "step",
    "epoch",
    "stage",
    "split",
    "loss",
    "accuracy",
    "accuracy_by_loop",
    "bridge_probability_by_loop",
    "bridge_cosine_by_loop",
    "gates",
    "learning_rate",
    "gradient_norm",
    "gradient_norm_by_loop",
    "seconds",
}


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def weights(folder):
    return read_tensors(folder / "model.safetensors")


def equal(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


@pytest.fixture
def made(recipe, tmp_path):
    """Train a recipe into a folder of its own."""

    def made(name="run", **changes):
        return train(recipe(**changes), tmp_path / name, quiet=True)

    return made


def test_the_loss_falls(made):
    folder = made(steps=60, optimizer={"lr": 3e-3, "warmup": 5})
    loss = {r["step"]: r["loss"] for r in history(folder) if r["split"] == "train_id"}
    assert loss[60] < 0.7 * loss[0]


def test_equal_seeds_give_equal_weights(made):
    assert equal(weights(made("a")), weights(made("b")))


def test_another_seed_gives_other_weights(made):
    assert not equal(weights(made("a")), weights(made("b", seed=1)))


def test_measuring_does_not_change_the_training(made):
    often = made("a", steps=12, measure={"every": 5})
    seldom = made("b", steps=12, measure={"every": 1000})
    assert equal(weights(often), weights(seldom))
    assert [r["step"] for r in history(often)[::4]] == [0, 5, 10, 12]
    assert [r["step"] for r in history(seldom)[::4]] == [0, 12]


def test_what_is_measured_does_not_depend_on_how_often(made):
    often = {(r["step"], r["split"]): r for r in history(made("a", measure={"every": 1}))}
    for record in history(made("b", measure={"every": 3})):
        other = often[record["step"], record["split"]]
        assert {**record, "seconds": 0} == {**other, "seconds": 0}


def test_a_record_has_exactly_the_contracts_keys(made):
    for record in history(made()):
        assert record.keys() == KEYS


def test_every_split_is_measured_at_every_measurement(made):
    places = [(r["step"], r["split"]) for r in history(made())]
    splits = ["train_atom", "train_id", "test_id", "test_ood"]
    assert places == [(step, split) for step in (0, 2, 4, 6) for split in splits]


def test_only_the_splits_asked_for_are_measured(made):
    folder = made(measure={"splits": ["test_ood"]})
    assert {r["split"] for r in history(folder)} == {"test_ood"}


def test_values_by_loop_have_one_value_for_each_loop(made):
    for record in history(made(model_changes={"n_loops": 3})):
        assert len(record["accuracy_by_loop"]) == 3
        assert record["accuracy"] == record["accuracy_by_loop"][-1]
        gate = record["gates"]["recurrence.gate.hook_post"]
        assert len(gate["mean"]) == len(gate["sd"]) == 2
        bridges = record["bridge_probability_by_loop"], record["bridge_cosine_by_loop"]
        if record["split"] == "train_atom":
            assert bridges == (None, None)
        else:
            assert [len(values) for values in bridges] == [3, 3]
        if record["step"]:
            assert len(record["gradient_norm_by_loop"]) == 3
            assert all(norm > 0 for norm in record["gradient_norm_by_loop"])
        else:
            assert record["gradient_norm"] is record["gradient_norm_by_loop"] is None


def test_the_loss_before_training_is_about_that_of_a_guess(made):
    first = history(made())[0]
    assert first["loss"] == pytest.approx(math.log(17), rel=0.5)


def test_the_first_measurement_is_of_the_fresh_weights(recipe, made):
    folder = made()
    task, resolved = resolve(recipe())
    torch.manual_seed(0)
    model = build_model(model_config(resolved.model)).eval()
    rows = task.batch("test_id", 8, 0)
    said = model(**rows.inputs, logits_at=rows.read_at).detach()
    wanted = torch.nn.functional.cross_entropy(said, rows.answer)
    record = next(r for r in history(folder) if (r["step"], r["split"]) == (0, "test_id"))
    assert record["loss"] == pytest.approx(float(wanted), rel=1e-4)


def test_a_finished_run_holds_its_files_and_no_pickle(made):
    folder = made()
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "recipe.yaml",
        "history.jsonl",
        "model.safetensors",
        "card.md",
        "resume/state.safetensors",
        "resume/state.json",
        *(f"steps/{step}.safetensors" for step in (0, 2, 4, 6)),
    }


def test_the_last_kept_step_is_the_final_model_in_half_the_bytes(made):
    folder = made()
    final = {name: tensor.bfloat16() for name, tensor in weights(folder).items()}
    assert equal(read_tensors(folder / "steps" / "6.safetensors"), final)


def test_weights_are_kept_densely_at_first_and_then_spaced():
    cfg = SaveConfig(dense_every=2, dense_until=6, every=5)
    assert [step for step in range(21) if is_saved(cfg, step)] == [0, 2, 4, 6, 10, 15, 20]


def test_the_card_names_every_split_and_how_to_make_the_run(made):
    card = (made() / "card.md").read_text()
    assert card.startswith("# tiny\n")
    for split in ("train_atom", "train_id", "test_id", "test_ood"):
        assert f"| {split} |" in card


def test_a_folder_that_holds_a_run_is_refused(recipe, made):
    folder = made()
    before = weights(folder)
    with pytest.raises(ConfigError, match="already holds a run; choose another --out, or --res"):
        train(recipe(seed=1), folder, quiet=True)
    assert equal(weights(folder), before)


def test_a_loss_that_is_no_number_stops_the_run_at_a_named_step(recipe, tmp_path):
    wild = recipe(
        optimizer={"lr": 1e30, "warmup": 0}, measure={"every": 1000}, save={"dense_every": 1}
    )
    trainer = Trainer(wild, tmp_path / "run", quiet=True)
    trainer.start(resume=False)
    with pytest.raises(TrainingDiverged, match=r"^step 2: the loss is .*; the step was not taken"):
        trainer.run()
    half = {name: tensor.bfloat16() for name, tensor in trainer.model.state_dict().items()}
    assert equal(half, read_tensors(tmp_path / "run" / "steps" / "1.safetensors"))
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_step_that_is_not_taken_leaves_no_gradient_behind(recipe, tmp_path):
    wild = recipe(optimizer={"lr": 1e30, "warmup": 0}, measure={"every": 1000})
    trainer = Trainer(wild, tmp_path / "run", quiet=True)
    trainer.start(resume=False)
    with pytest.raises(TrainingDiverged):
        trainer.run()
    assert all(p.grad is None or not p.grad.any() for p in trainer.model.parameters())


def test_a_tiny_clip_hardly_moves_the_weights_and_the_norm_is_that_before_it(made):
    still = {"clip": 1e-9, "warmup": 0, "weight_decay": 0.0, "lr": 1e-2}
    folder = made(steps=1, optimizer=still, measure={"every": 1})
    fresh = {n: t.float() for n, t in read_tensors(folder / "steps" / "0.safetensors").items()}
    free = made("free", steps=1, optimizer=still | {"clip": 1e9}, measure={"every": 1})
    moved, freely = (
        max(float((w[name] - fresh[name]).abs().max()) for name in fresh if "b_" in name)
        for w in (weights(folder), weights(free))
    )
    assert moved < 2e-3 < 5e-3 < freely
    assert history(folder)[-1]["gradient_norm"] == history(free)[-1]["gradient_norm"] > 1e-3


def test_padding_costs_nothing_in_the_loss(recipe, tmp_path):
    trainer = Trainer(recipe(), tmp_path / "run", quiet=True)
    batch = trainer.lessons.batch(0)
    assert "attention_mask" in batch.inputs
    together = trainer.model(**batch.inputs, logits_at=batch.read_at)
    wanted = torch.nn.functional.cross_entropy(together, batch.answer)
    torch.testing.assert_close(trainer._loss(0), wanted)


def test_rows_may_run_as_many_loops_as_they_have_hops(recipe, tmp_path):
    trainer = Trainer(recipe(loops="hops"), tmp_path / "run", quiet=True)
    batch = trainer.lessons.batch(0)
    total = torch.zeros(())
    for n_loops in (1, 2):
        rows = batch[batch.hops == n_loops].trimmed()
        said = trainer.model(**rows.inputs, n_loops=n_loops, logits_at=rows.read_at)
        total = total + torch.nn.functional.cross_entropy(said, rows.answer, reduction="sum")
    torch.testing.assert_close(trainer._loss(0), total / len(batch))


def test_no_row_runs_more_loops_than_the_model_has(recipe, tmp_path):
    one = {"model_changes": {"n_loops": 1}}
    hops = Trainer(recipe(loops="hops", **one), tmp_path / "a", quiet=True)
    plain = Trainer(recipe(**one), tmp_path / "b", quiet=True)
    assert torch.equal(hops._loss(0), plain._loss(0))


def test_the_history_is_cut_back_to_a_step_and_to_whole_lines(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"step": 0}\n{"step": 2}\n{"step": 4}\n{"ste')
    cut_history(path, 2)
    assert path.read_text() == '{"step": 0}\n{"step": 2}\n'


def test_a_history_without_a_point_to_go_on_from_begins_anew(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"step": 0}\n{"ste')
    cut_history(path, 0)
    assert path.read_text() == ""


def test_a_card_tells_what_a_recipe_is_for_from_what_came_of_it(recipe, tmp_path):
    from workbench.training import train

    said = recipe(steps=2).model_copy(update={"about": "Does it compose?"})
    card = (train(said, tmp_path / "run", quiet=True) / "card.md").read_text()
    assert "\n\nWhat the recipe is for: Does it compose?\n\n" in card
    silent = (train(recipe(steps=2), tmp_path / "silent", quiet=True) / "card.md").read_text()
    assert "What the recipe is for" not in silent


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
@pytest.mark.parametrize("dense_until", [0, 3, 6, 50])
def test_steps_that_are_kept_are_counted_without_looking_at_each(steps, dense_until):
    from workbench.settings.recipe import SaveConfig
    from workbench.training.trainer import is_saved, n_saved

    cfg = SaveConfig(dense_every=3, dense_until=dense_until, every=5)
    assert n_saved(cfg, steps) == sum(is_saved(cfg, step) for step in range(steps))
