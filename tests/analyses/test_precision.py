"""Half precision, what it overflows, and how exactly weights are kept."""

import math

import pytest
import torch

from workbench.instruments import read
from workbench.instruments.finite import finite_hooks
from workbench.runs import load_run
from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, read_tensors, write_tensors

HALVES = (torch.bfloat16, torch.float16)


@pytest.mark.parametrize("impossible", [-torch.inf, -65504.0])
def test_the_entropy_of_a_lens_with_an_impossible_word_is_a_number(make_run, impossible):
    # trl #7221: 0 times minus infinity is no number
    from analyses import analyse

    run = make_run("looped")
    model = run.model.twin()

    def rule_out(logits, hook):
        logits = logits.clone()
        logits[..., 3] = impossible
        return logits

    model.add_hook("unembed.hook_out", rule_out)
    lens = analyse("logit_lens", run, split="test_ood", n=2, model=model).result
    assert lens.entropy.isfinite().all()
    assert float(lens.entropy.max()) <= math.log(run.task.d_vocab - 1) + 1e-5


@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_measured_in_half_precision_is_worked_out_in_float32(speaker, world, dtype):
    model = speaker("discoloop").to(dtype)
    batch = world.split("test_ood")
    found = read(model, batch)
    logits = torch.stack(list(model(**batch.inputs, every_loop=True, logits_at=batch.read_at)))
    wanted = torch.nn.functional.cross_entropy(logits[-1].float(), batch.answer, reduction="none")
    assert found.loss.dtype == found.bridge_probability.dtype == torch.float32
    assert torch.equal(found.loss, wanted)
    assert found.bridge_cosine.dtype == torch.float32


@pytest.mark.parametrize("name", ["logit_lens", "answers", "bridge_alignment", "attention"])
def test_figures_of_half_precision_hold_numbers_of_float32(make_run, name):
    from analyses import analyse

    run = make_run("discoloop")
    model = load_run(run.path).model.to(torch.bfloat16)
    found = analyse(name, run, n=4, model=model).result
    tensors = [value for value in vars(found).values() if torch.is_tensor(value)]
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    assert floats and all(tensor.dtype in (torch.float32, torch.float64) for tensor in floats)
    shares = torch.cat([tensor.flatten() for tensor in floats])
    # A softmax of bfloat16 has 8 bits; one of float32 is no number of bfloat16
    assert bool((shares != shares.bfloat16().float()).any())


def test_an_overflow_is_reported_with_the_loop_where_it_starts(speaker, world):
    model = speaker("looped").half()
    batch = world.split("test_ood")

    def grow(tensor, hook):
        return tensor * 1e5 if hook.clock.loop == 1 else tensor

    hooks = [("blocks.0.hook_resid_post", grow)]
    said = "the state after loop 1 is not finite; the model computes in float16, whose largest"
    with (
        model.hooks(fwd_hooks=hooks),
        model.hooks(fwd_hooks=finite_hooks(model), must_fire=False),
        pytest.raises(ConfigError, match=said),
    ):
        model(**batch.inputs, n_loops=3)


def test_an_edit_that_overflows_is_refused_by_evaluation_and_by_analyses(make_run):
    from analyses import analyse
    from workbench.edits import parse_edits
    from workbench.runs.evaluation import evaluate

    run = make_run("looped")
    edits = [
        {"do": "scale", "place": "recurrence.hook_state_post", "factor": 1e38, "loops": [0]},
        {"do": "scale", "place": "recurrence.hook_state_post", "factor": 1e38, "loops": [1]},
    ]
    for ask in (
        lambda: evaluate(run, split="test_ood", edits=parse_edits(edits)),
        lambda: analyse("logit_lens", run, split="test_ood", edits=edits),
    ):
        with pytest.raises(ConfigError, match=r"the state after loop \d is not finite"):
            ask()


def test_weights_that_are_not_finite_are_refused_by_name(make_run, tmp_path):
    import shutil

    folder = shutil.copytree(make_run("looped").path, tmp_path / "copy")
    weights = read_tensors(folder / "model.safetensors")
    weights["blocks.0.mlp.W_in"][0, 0] = torch.nan
    write_tensors(folder / "model.safetensors", weights)
    with pytest.raises(FileError, match=r"blocks\.0\.mlp\.W_in holds numbers that are not finite"):
        _ = load_run(folder).model


def test_a_step_says_how_exactly_its_weights_are_kept(make_run):
    from analyses import analyse
    from workbench.runs.evaluation import evaluate, in_words

    run = make_run("looped")
    step = run.steps[0]
    kept = evaluate(run, step=step, split="test_ood")
    assert (kept["precision"], evaluate(run)["precision"]) == ("bfloat16", "float32")
    assert "weights kept in bfloat16, measured in float32" in in_words(kept, "hops")
    found = analyse("logit_lens", run, split="test_ood", step=step, n=2)
    assert f"step {step} (kept in bfloat16)" in found.provenance.line()
    assert found.to_plain()["precision"] == "bfloat16"
