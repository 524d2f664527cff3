from pathlib import Path

import pytest

from workbench.settings.config import ConfigError, parse
from workbench.settings.plain_yaml import parse_yaml
from workbench.settings.recipe import Recipe, load_recipe, recipe_names, versions
from workbench.training.resolve import resolve

DATA = Path(__file__).parents[1] / "data" / "worded"
SPLITS = ("train", "valid", "test")
TEXT = """
name: small
task: {name: two_hop}
model: {family: looped, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training:
  steps: 10
  optimizer: {lr: 1e-4}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(TEXT)
    return path


def refusal(file, *changes):
    with pytest.raises(ConfigError) as error:
        load_recipe(file, changes)
    return str(error.value)


def test_a_number_with_an_exponent_is_a_number(file):
    assert load_recipe(file).training.optimizer.lr == 1e-4


def test_a_misspelt_field_is_answered_with_the_nearest(file):
    file.write_text(TEXT + "trainning: {steps: 1}\n")
    assert "has no field 'trainning'; did you mean 'training'?" in refusal(file)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("sed", "seed"),
        ("training.batchsize", "batch_size"),
        ("training.optimizer.warm_up", "warmup"),
        ("training.measure.evry", "every"),
    ],
)
def test_a_misspelt_field_of_a_group_is_answered_with_the_nearest(file, path, near):
    assert refusal(file, f"{path}=1") == (
        f"recipe small.yaml has no field {path!r}; did you mean {near!r}?"
    )


def test_a_change_wins_over_the_file(file):
    recipe = load_recipe(file, ["training.optimizer.lr=3e-2", "training.steps=7", "model.tau=2.0"])
    assert recipe.training.optimizer.lr == 0.03
    assert recipe.training.steps == 7
    assert recipe.model["tau"] == 2.0


def test_the_last_of_two_changes_wins(file):
    assert load_recipe(file, ["seed=1", "seed=2"]).seed == 2


def test_a_change_may_make_a_group(file):
    assert load_recipe(file, ["training.measure.every=3"]).training.measure.every == 3


def test_a_change_may_hold_a_list_or_nothing(file):
    recipe = load_recipe(file, ["training.measure.splits=[test_id]", "commit=null"])
    assert recipe.training.measure.splits == ["test_id"]
    assert recipe.commit is None


@pytest.mark.parametrize("change", ["seed", "=1"])
def test_a_change_without_a_name_and_a_value_is_refused(file, change):
    assert refusal(file, change) == f"--set {change!r} is not of the form a.b=c"


def test_a_change_below_a_value_is_refused(file):
    assert refusal(file, "name.x=1") == "--set 'name.x=1': name is a value, not a group of fields"


def test_text_for_a_number_is_refused(file):
    assert refusal(file, "training.steps=many").startswith(
        "recipe small.yaml: training.steps='many': "
    )


@pytest.mark.parametrize("name", ["steps", "batch_size"])
def test_less_than_one_step_or_row_is_refused(file, name):
    assert f"{name}=0 must be at least 1" in refusal(file, f"training.{name}=0")


@pytest.mark.parametrize(
    "path", ["measure.every", "measure.n", "save.every", "save.dense_every", "save.resume_every"]
)
def test_an_interval_below_one_is_refused(file, path):
    assert f"{path.rpartition('.')[2]}=0 must be at least 1" in refusal(file, f"training.{path}=0")


def test_shares_that_do_not_add_up_are_refused(file):
    assert "the shares of mixture add up to 0.7; they must add up to 1" in refusal(
        file, "training.mixture={train_id: 0.7}"
    )


def test_a_group_that_does_not_go_together_is_named_without_its_content(file):
    assert refusal(file, "training.loops=[8, 5]") == (
        "recipe small.yaml: training: loops=[8, 5] must be [least, most], least from 1 on"
    )


def test_a_file_without_keys_is_refused(file):
    file.write_text("just words")
    assert "holds no keys" in refusal(file)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(ConfigError, match="no recipe 'nowhere', neither as a file nor among"):
        load_recipe("nowhere")


# What recipes of paper size find elsewhere, and what stands in for it here
EXCERPTS = {
    "gsm8k": {f"{split}_file": "gsm8k_augmented_excerpt.txt" for split in SPLITS},
    "hotpotqa": {"hub": None} | {f"{split}_file": "hotpotqa_invented.json" for split in SPLITS[:2]},
    "prosqa": {f"n_{split}": 8 for split in SPLITS},
}
LONG_DRAWN = ("prosqa", "reachability", "boolean", "kinship")
BACKBONE = "openai-community/gpt2"


def of_backbones(given):
    return [name for name in recipe_names() if ("tokenizer" in load_recipe(name).task) is given]


def test_every_recipe_that_ships_parses_and_fits_its_task():
    for name in of_backbones(False):
        recipe = load_recipe(name)
        # Of rows that take minutes to draw, a hundred say as much
        few = {f"n_{split}": 100 for split in SPLITS} if recipe.task["name"] in LONG_DRAWN else {}
        assert resolve(recipe.model_copy(update={"task": recipe.task | few}))[1].name


@pytest.mark.parametrize("name", of_backbones(True))
def test_every_recipe_on_a_backbone_fits_its_task_on_excerpts(name, gpt2):
    recipe = load_recipe(name)
    assert recipe.task["tokenizer"] == BACKBONE
    kind = recipe.task["name"]
    assert recipe.training.start_from in (f"pretrained:{BACKBONE}", f"{kind}-paper-cot")
    changes = {
        key: str(DATA / value) if key.endswith("_file") else value
        for key, value in EXCERPTS[kind].items()
    }
    small = recipe.model_copy(
        update={
            "task": recipe.task | {"tokenizer": gpt2} | changes,
            "training": recipe.training.model_copy(update={"start_from": f"pretrained:{gpt2}"}),
        }
    )
    stored = resolve(small)[1]
    assert stored.model["d_model"] == 16
    assert stored.model["dropout"] == 0.1
    assert parse(Recipe, parse_yaml(stored.to_yaml(), "x"), "x") == stored


@pytest.mark.parametrize(
    ("name", "rows", "epochs"),
    [
        ("gsm8k-paper-cot", 385_620, 5),
        ("gsm8k-paper-agclr", 385_620, 12),
        ("hotpotqa-paper-cot", 15_000, 15),
        ("hotpotqa-paper-coconut", 15_000, 12),
        ("prosqa-paper-coconut", 17_886, 17),
    ],
)
def test_steps_of_paper_size_follow_from_rows_and_epochs(name, rows, epochs):
    cfg = load_recipe(name).training
    assert cfg.steps == round(epochs * rows / cfg.batch_size)
    assert (cfg.batch_size, cfg.optimizer.lr, cfg.optimizer.weight_decay) == (128, 1e-4, 0.01)
    assert (cfg.optimizer.warmup, cfg.optimizer.clip) == (100, 1.0)


def test_a_stored_recipe_reads_the_same(recipe):
    _, stored = resolve(recipe(mixture={"train_atom": 0.25, "train_id": 0.75}))
    assert parse(Recipe, parse_yaml(stored.to_yaml(), "x"), "x") == stored


def test_a_resolved_recipe_says_everything(recipe):
    _, stored = resolve(recipe())
    assert stored.model["tau"] == 1.0  # a default, written out
    assert stored.model["d_vocab"] == 1 + 2 * 6 + 4  # the pad, both graphs, relations
    assert stored.model["n_ctx"] == 3
    assert stored.task["n_test_ood"] == 6
    assert stored.versions == dict(versions())


def test_a_vocabulary_too_small_for_the_task_is_refused(recipe):
    with pytest.raises(ConfigError, match="needs d_vocab=17 and n_ctx=3; the recipe has 16 and 3"):
        resolve(recipe(model_changes={"d_vocab": 16}))


GRAPHS = {"name": "reachability", "n_train": 40, "n_valid": 10, "n_test": 8}


def graph_recipe(model=None, **training):
    shape = dict(family="universal", d_model=16, n_heads=2, n_layers=1, d_mlp=32, max_loops=6)
    data = {
        "name": "graphs",
        "task": GRAPHS,
        "model": shape | (model or {}),
        "training": {"steps": 1} | training,
    }
    return parse(Recipe, data, "graphs")


def test_a_first_position_that_sees_nothing_is_not_read():
    shape = {"family": "depth_recurrent", "n_layers": 1, "n_loops": 2, "d_model": 8, "n_heads": 2}
    data = {
        "name": "values",
        "task": {"name": "boolean", "n_train": 8, "n_valid": 2, "n_test": 2},
        "model": shape | {"d_mlp": 8, "normalization_type": "LN", "perception": "causal"},
        "training": {"steps": 1},
    }
    with pytest.raises(ConfigError) as error:
        resolve(parse(Recipe, data, "values"))
    assert str(error.value) == (
        "readout 'cls' reads the first position, which sees no other under perception 'causal'; "
        "'expression' lets it see all"
    )


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"perception": "causal"}, "'causal' does not take this task's questions; 'nodes' does"),
        ({"readout": "vocabulary"}, "with yes or no, which readout 'vocabulary' does not give"),
        ({"readout": "node_pear"}, "no readout 'node_pear'; did you mean 'node_pair'?"),
    ],
)
def test_a_part_that_does_not_fit_the_task_is_refused(part, sentence):
    with pytest.raises(ConfigError) as error:
        resolve(graph_recipe(part))
    assert sentence in str(error.value)


def test_a_yes_or_no_is_no_answer_to_a_task_of_words(recipe):
    with pytest.raises(ConfigError, match="with a word, which readout 'cls' does not give"):
        resolve(recipe(model_changes={"readout": "cls"}))


def test_training_loops_beyond_the_table_are_refused():
    with pytest.raises(ConfigError, match=r"training.loops=\[5, 30\] is more than .*max_loops=6"):
        resolve(graph_recipe(loops=[5, 30]))


def test_a_resolved_recipe_says_how_many_loops_training_runs():
    assert resolve(graph_recipe(loops=[2, 5]))[1].model["trained_loops"] == 5
    assert resolve(graph_recipe())[1].model["trained_loops"] == 2
    told = resolve(graph_recipe({"trained_loops": 3}))[1]
    assert told.model["trained_loops"] == 3
