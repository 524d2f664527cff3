"""Results name the weights they came from, and say what is not as trained."""

import hashlib
import shutil

import pytest
import torch

from analyses import analyse
from workbench.edits import parse_edits
from workbench.runs import load_run
from workbench.runs.evaluation import evaluate, in_words
from workbench.settings.files import read_tensors, write_tensors


@pytest.fixture
def copy(make_run, tmp_path, monkeypatch):
    """A run whose files a test may change, found by its name."""
    shutil.copytree(make_run("looped").path, tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    return load_run("mine")


def by_hand(path):
    digest = hashlib.sha256()
    for name, tensor in sorted(read_tensors(path).items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def change(path):
    write_tensors(path, {n: t + (n == "embed.W_E") for n, t in read_tensors(path).items()})


def test_a_result_names_the_hash_of_its_weights(copy):
    final = copy.path / "model.safetensors"
    step = copy.steps[0]
    assert evaluate(copy)["weights"] == by_hand(final)
    found = analyse("logit_lens", copy, split="test_ood", n=2, step=step)
    assert found.to_plain()["weights"] == by_hand(copy.path / "steps" / f"{step}.safetensors")
    before = by_hand(final)
    change(final)
    assert evaluate(load_run("mine"))["weights"] == by_hand(final) != before


def test_a_result_names_the_hash_of_the_run_that_it_patches_from(copy, make_run):
    run = make_run("discoloop")
    edits = [{"do": "patch", "place": "blocks.0.hook_resid_post", "run": "mine"}]
    wanted = {"mine": by_hand(copy.path / "model.safetensors")}
    assert evaluate(run, split="test_ood", edits=parse_edits(edits))["patched_from"] == wanted
    found = analyse("logit_lens", run, split="test_ood", n=2, edits=edits)
    assert found.to_plain()["patched_from"] == wanted


def test_the_page_does_not_show_a_result_of_a_patch_from_weights_of_yesterday(copy, make_run):
    from app import session
    from app.session import Chosen

    chosen = Chosen("looped", str(make_run("looped").path), "cpu")
    edits = [{"do": "patch", "place": "blocks.0.hook_resid_post", "run": "mine"}]
    ask = {"split": "test_ood", "n": 4, "edits": edits}
    before = session.analysed("answers", chosen, **ask)
    assert torch.equal(
        session.analysed("answers", chosen, **ask).result.probability, before.result.probability
    )
    change(copy.path / "model.safetensors")
    after = session.analysed("answers", chosen, **ask)
    assert not torch.equal(after.result.probability, before.result.probability)


def test_shares_by_difficulty_carry_their_counts(make_run):
    run = make_run("looped")
    found = evaluate(run)
    levels = run.task.split(found["split"]).difficulty
    assert found["n_by_difficulty"] == {
        str(level): int((levels == level).sum()) for level in levels.unique().tolist()
    }
    assert sum(found["n_by_difficulty"].values()) == found["n"]


def test_loops_beyond_those_trained_are_marked(make_run):
    run = make_run("looped")
    found = evaluate(run, n_loops=5)
    assert (found["loops"], found["trained_loops"]) == (5, 2)
    assert "after each loop (trained with 2): " in in_words(found, "hops")
    assert "after each loop: " in in_words(evaluate(run), "hops")
    beyond = analyse("logit_lens", run, split="test_ood", n=2, n_loops=5)
    assert "5 loops, trained with 2" in beyond.provenance.line()
    as_trained = analyse("logit_lens", run, split="test_ood", n=2, n_loops=2)
    assert as_trained.provenance.line().endswith("2 loops")


def test_a_run_in_training_has_no_final_weights(copy):
    (copy.path / "model.safetensors").unlink()
    (copy.path / "history.jsonl").touch()
    unfinished = load_run("mine")
    line = analyse("training_curves", unfinished).provenance.line()
    assert "final weights" not in line and "run in training" in line
    assert f"step {unfinished.steps[-1]}" in (
        analyse("logit_lens", unfinished, split="test_ood", n=2).provenance.line()
    )


def test_loops_have_two_names_and_one_number(make_run):
    from analyses import analyse
    from workbench.runs.evaluation import evaluate

    run = make_run("looped")
    one, other = (analyse("answers", run, n=4, **{name: 3}) for name in ("loops", "n_loops"))
    assert one.to_plain() == other.to_plain() and "loops=3" in one.code()
    assert evaluate(run, n=4, loops=3) == evaluate(run, n=4, n_loops=3)
    with pytest.raises(ValueError, match="loops=2 and n_loops=3 are two names of one number"):
        analyse("answers", run, n=4, loops=2, n_loops=3)


def test_a_result_that_cannot_be_drawn_leaves_the_files_of_an_earlier_one(
    make_run, tmp_path, monkeypatch
):
    def fail(result):
        raise KeyError("no figure")

    before = {
        p: p.read_bytes() for p in analyse("answers", make_run("looped"), n=4).write(tmp_path)
    }
    other = analyse("answers", make_run("looped"), n=5)
    monkeypatch.setattr(type(other.result), "figure", fail)
    with pytest.raises(KeyError, match="no figure"):
        other.write(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_no_result_is_refused(make_run):
    from analyses import ANALYSES, analysis
    from workbench.capabilities import CanLoop
    from workbench.settings.config import ConfigError
    from workbench.tasks.batch import Batch

    @analysis()
    def bare(model: CanLoop, batch: Batch):
        return 3

    try:
        with pytest.raises(ConfigError, match="bare returned an object of class int, which is not"):
            analyse("bare", make_run("looped"), n=4)
    finally:
        del ANALYSES._things["bare"]
