"""Where weights come from: another run, or a pretrained transformer."""

from pathlib import Path

import pytest
import torch

from workbench.pretrained.architectures import PretrainedError
from workbench.runs import load_run
from workbench.settings.config import parse
from workbench.settings.files import FileError
from workbench.settings.recipe import Recipe
from workbench.training import Trainer, train
from workbench.training.resolve import resolve

SUMS = Path(__file__).parents[2] / "data" / "worded" / "gsm8k_augmented_excerpt.txt"


@pytest.fixture(scope="module")
def words(staged, tmp_path_factory):
    """A run that says its steps."""
    recipe = staged(steps=2, curriculum={"method": "cot"})
    return train(recipe, tmp_path_factory.mktemp("runs") / "words", quiet=True)


def begun(recipe, folder):
    return Trainer(recipe, folder / "run", quiet=True).model


def test_a_model_begins_with_the_weights_of_a_run(staged, words, tmp_path):
    model = begun(staged(start_from=str(words)), tmp_path)
    theirs = load_run(words).model.state_dict()
    for name, tensor in model.state_dict().items():
        if "rel_pos" not in name and "W_pos" not in name:
            assert torch.equal(tensor, theirs[name]), name


def test_what_the_run_lacks_of_the_recurrence_is_fresh(staged, words, tmp_path):
    model = begun(staged(start_from=str(words), model_changes={"family": "agclr"}), tmp_path)
    assert torch.equal(model.W_E, load_run(words).model.W_E)
    assert not model.recurrence.read.W_gate.any()


def test_a_gate_that_is_shut_stays_shut_whatever_the_start_says(staged, tmp_path):
    open_gates = {"family": "agclr"}
    first = train(staged(steps=1, model_changes=open_gates), tmp_path / "open", quiet=True)
    shut = staged(start_from=str(first), model_changes=open_gates | {"shut": ["read"]})
    trainer = Trainer(shut, tmp_path / "run", quiet=True)
    for number in range(7):
        trainer.update(number)
    assert (trainer.model.recurrence.read.b_gate == -10).all()
    assert not trainer.model.recurrence.read.W_gate.any()
    assert trainer.model.recurrence.forget.W_gate.any()


def test_a_recipe_without_a_width_takes_over_the_shape_of_its_start(staged, words):
    recipe = staged(start_from=str(words))
    bare = recipe.model_copy(update={"model": {"family": "agclr", "biases": "gsm8k"}})
    shape = resolve(bare)[1].model
    assert (shape["d_model"], shape["n_layers"], shape["d_mlp"]) == (16, 1, 32)
    assert (shape["family"], shape["biases"]) == ("agclr", "gsm8k")


def test_weights_of_another_shape_are_refused(staged, words, tmp_path):
    with pytest.raises(FileError, match=r"blocks\.0.* is .*; the recipe's model has"):
        begun(staged(start_from=str(words), model_changes={"d_mlp": 48}), tmp_path)


def test_a_start_that_is_not_there_is_named(staged, tmp_path):
    with pytest.raises(FileError, match="no run 'nowhere'"):
        begun(staged(start_from="nowhere"), tmp_path)


def sums(gpt2, **changes):
    data = {
        "name": "sums",
        "task": {"name": "gsm8k", "tokenizer": gpt2, "train_file": str(SUMS), "n_train": 4},
        "model": {"family": "coconut"},
        "training": {
            "steps": 4,
            "batch_size": 2,
            "start_from": f"pretrained:{gpt2}",
            "curriculum": {"max_latent_stage": 1, "epochs_per_stage": 1, "first_stage": 1},
            "optimizer": {"warmup": 1},
            "measure": {"every": 4, "n": 1, "splits": ["train"]},
        }
        | changes,
    }
    return parse(Recipe, data, "recipe sums")


def test_a_run_from_a_pretrained_transformer_is_trained_and_asked(gpt2, tmp_path):
    from workbench.runs.evaluation import evaluate

    folder = train(sums(gpt2), tmp_path / "sums", quiet=True)
    run = load_run(folder)
    assert run.model.cfg.d_vocab == run.task.d_vocab == 257 + 4
    found = evaluate(run, split="train", n=1)
    assert (found["thoughts"], found["trained_thoughts"]) == (1, 1)
    stage = {r["step"]: r["stage"] for r in run.history}
    assert stage == {0: 1, 4: 2}


def test_a_model_on_a_backbone_says_what_the_backbone_says(gpt2, tmp_path):
    from transformers import AutoModelForCausalLM

    model = begun(sums(gpt2), tmp_path).eval()
    tokens = torch.randint(250, (2, 12))
    with torch.no_grad():
        wanted = AutoModelForCausalLM.from_pretrained(gpt2)(tokens).logits
        torch.testing.assert_close(model(tokens)[..., :257], wanted, atol=1e-4, rtol=0)


def test_special_tokens_of_a_tokenizer_without_the_mark_begin_near_the_mean(gpt2, tmp_path):
    rows = begun(sums(gpt2), tmp_path).W_E.detach()
    mean, spread = rows[:257].mean(0), rows[:257].std(0)
    assert ((rows[257:] - mean).abs() < spread).all()


def test_a_pretrained_start_that_is_not_there_is_named(gpt2, tmp_path):
    with pytest.raises(PretrainedError, match="there is no 'nowhere' in"):
        begun(sums(gpt2, start_from=f"pretrained:{tmp_path}/nowhere"), tmp_path)
