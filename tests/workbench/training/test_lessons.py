"""Curricula while they train: stages in the history, fresh moments, resuming across a stage."""

import json
import shutil

import pytest
import torch

from workbench.runs import load_run
from workbench.settings.config import ConfigError
from workbench.settings.files import read_tensors, write_tensors
from workbench.training import Trainer, train
from workbench.training.resolve import resolve


class Stop(BaseException):
    """What stops a run from outside."""


def history(folder):
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line) | {"seconds": 0} for line in lines]


def same(folder, other):
    """Whether two runs ended with the same weights, moments, history and kept steps."""
    steps = sorted(path.name for path in (other / "steps").iterdir())
    assert sorted(path.name for path in (folder / "steps").iterdir()) == steps
    names = ["model.safetensors", "resume/state.safetensors", *(f"steps/{name}" for name in steps)]
    for name in names:
        mine, theirs = read_tensors(folder / name), read_tensors(other / name)
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine), name
    return history(folder) == history(other)


@pytest.fixture(scope="module")
def straight(staged, tmp_path_factory):
    return train(staged(), tmp_path_factory.mktemp("runs") / "straight", quiet=True)


@pytest.fixture
def trainer(staged, tmp_path):
    return lambda **changes: Trainer(staged(**changes), tmp_path / "run", quiet=True)


# Points lie after steps 2, 4, 6 and 8; stages change after 3 and 6
@pytest.mark.parametrize("step", [2, 3, 4, 5, 7, 8])
def test_a_stopped_run_resumes_to_the_same_end(staged, straight, tmp_path, step):
    folder = tmp_path / "stopped"
    stopped = Trainer(staged(), folder, quiet=True)

    def stop(module, args):
        if module.training and stopped.step == step - 1:
            raise Stop

    stopped.model.register_forward_pre_hook(stop)
    stopped.start(resume=False)
    with pytest.raises(Stop):
        stopped.run()
    train(staged(), folder, resume=True, quiet=True)
    assert same(folder, straight)


def test_a_finished_run_taken_up_again_keeps_its_chosen_weights(staged, straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "finished")
    last = read_tensors(folder / "model.safetensors")
    chosen = {name: tensor + 1 for name, tensor in last.items()}  # of a step that is not the last
    write_tensors(folder / "model.safetensors", chosen)
    train(staged(), folder, resume=True, quiet=True)
    found = read_tensors(folder / "model.safetensors")
    assert all(torch.equal(found[name], chosen[name]) for name in chosen)


def test_the_history_holds_stage_thoughts_and_learning_rate(straight):
    records = history(straight)
    # Of the step that was taken last; before the first one, of the first
    assert [r["stage"] for r in records] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [r["thoughts"] for r in records] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert [r["learning_rate"] for r in records] == [None, 0.005, *[0.01] * 8]
    assert [r["epoch"] for r in records] == pytest.approx([step / 3 for step in range(10)])
    assert all(0 <= r["answered"] <= 1 for r in records)


def moments(trainer):
    """How many steps the optimizer's moments know of."""
    known = {float(state["step"]) for state in trainer.optimizer.state_dict()["state"].values()}
    assert len(known) == 1
    return known.pop()


@pytest.mark.parametrize(
    ("reset", "wanted"),
    [(True, [1, 2, 3, 1, 2, 3, 1, 2, 3]), (False, [1, 2, 3, 4, 5, 6, 7, 8, 9])],
)
def test_moments_are_forgotten_where_the_stage_changes_and_only_there(trainer, reset, wanted):
    made = trainer(curriculum={"reset_optimizer": reset})
    known = []
    for number in range(9):
        made.update(number)
        known.append(moments(made))
    assert known == wanted


def test_a_first_step_in_a_later_stage_forgets_nothing(trainer):
    made = trainer(curriculum={"first_stage": 1})
    assert [made._forgets(number) for number in range(6)] == [False] * 3 + [True] + [False] * 2


def test_rows_of_a_batch_are_in_the_layout_of_its_stage(trainer):
    made = trainer()
    task = made.task
    for number, (thoughts, left) in ((0, (0, "all")), (3, (1, "but one")), (6, (1, "none"))):
        batch = made.lessons.batch(number)
        assert batch.n_thoughts.tolist() == [thoughts] * 4
        for row in range(4):
            n_steps = int(batch.steps[row])
            gone = {"all": 0, "but one": 1, "none": n_steps}[left]
            encoded = task.encoded("train")[int(batch.number[row])]
            said = [t for step in encoded.steps[gone:] for t in step] + encoded.answer
            prompt, length = int(batch.prompt[row]), int(batch.length[row])
            assert batch.tokens[row, prompt : length - 1].tolist() == said


def test_the_loss_is_a_mean_over_scored_tokens_however_the_batch_is_parted(trainer):
    made = trainer()
    batch = made.lessons.batch(4)
    whole = made.lessons.loss(batch, 4, lambda rows: iter([rows]))
    parted = made.lessons.loss(batch, 4, lambda rows: (rows[i : i + 1].trimmed() for i in range(4)))
    torch.testing.assert_close(whole, parted)
    logits = made.model(**batch.inputs)
    wanted = torch.nn.functional.cross_entropy(
        logits[:, :-1][batch.scored[:, 1:]], batch.tokens[:, 1:][batch.scored[:, 1:]]
    )
    torch.testing.assert_close(whole, wanted)


def test_every_row_is_seen_once_an_epoch(trainer):
    made = trainer()
    for epoch in range(2):
        numbers = [n for i in range(3) for n in made.lessons.batch(3 * epoch + i).number.tolist()]
        assert sorted(numbers) == list(range(12))


def test_batches_depend_on_seed_and_number_alone(staged, tmp_path):
    mixed = {"curriculum": {"uniform_prob": 0.5}}
    one, same_again, other = (
        Trainer(staged(seed, **mixed), tmp_path / "run", quiet=True).lessons for seed in (0, 0, 1)
    )
    one.batch(0)
    assert torch.equal(one.batch(5).tokens, same_again.batch(5).tokens)
    assert not torch.equal(one.batch(5).tokens, other.batch(5).tokens)


def test_a_run_is_asked_in_the_layout_that_its_training_ended_with(straight):
    run = load_run(straight)
    assert run.task.layout.n_fillers == 1
    assert run.task.batch("test", 2).n_thoughts.tolist() == [1, 1]


def test_a_worded_task_without_a_curriculum_is_refused(staged):
    made = staged()
    bare = made.training.model_copy(update={"curriculum": None})
    with pytest.raises(ConfigError, match=r"training.curriculum is missing; a worded task needs"):
        resolve(made.model_copy(update={"training": bare}))


def test_a_family_that_does_not_think_is_refused(trainer):
    with pytest.raises(ConfigError, match="family 'looped' does not say its answers in words; "):
        trainer(model_changes={"family": "looped"})


def test_thoughts_beyond_the_context_are_refused_before_training(trainer):
    with pytest.raises(ConfigError, match=r"the task needs d_vocab=\d+ and n_ctx=\d+; the recipe"):
        trainer(model_changes={"n_ctx": 20})
