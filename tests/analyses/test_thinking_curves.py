"""The history of a run that thinks, as training curves show it."""

import json

import pytest
import torch

GATES = [f"recurrence.{gate}.hook_post" for gate in ("read", "forget", "write")]


@pytest.fixture
def staged(make_thinking_run, tmp_path):
    """A run whose history has three measurements, of two stages; its weights are not needed."""
    from workbench.runs import load_run

    run = make_thinking_run("agclr")
    (tmp_path / "recipe.yaml").write_text((run.path / "recipe.yaml").read_text())
    lines = []
    for step, stage, shares in ((0, 1, [0.25]), (10, 1, [0.5]), (20, 2, [0.5, 1.0])):
        for split in ("valid", "test"):
            gates = {place: {"mean": shares, "sd": [0.0] * len(shares)} for place in GATES}
            norms = None if step == 0 else [0.1 * n for n in range(1, len(shares) + 1)]
            record = {"step": step, "epoch": step / 10, "stage": stage, "thoughts": len(shares)}
            record |= {"split": split, "loss": 3.0 - step / 10, "accuracy": step / 20}
            record |= {"gates": gates, "gradient_norm": None if step == 0 else 1.0}
            lines.append(json.dumps(record | {"gradient_norm_by_loop": norms}))
    (tmp_path / "history.jsonl").write_text("\n".join(lines) + "\n")
    return load_run(tmp_path)


def test_curves_have_stages_thoughts_and_gates(staged):
    from analyses import training_curves

    found = training_curves(staged)
    assert found.splits == ("valid", "test")
    assert (found.stages, found.thoughts) == ((1, 1, 2), (1, 1, 2))
    assert list(found.begins) == [(20, 2)]
    assert found.accuracy[1].tolist() == [0.0, 0.5, 1.0]
    assert found.loss[0].tolist() == [3.0, 2.0, 1.0]
    assert found.gates.shape == (3, 3, 2)
    assert found.gates[0, 2].tolist() == [0.5, 1.0]
    assert found.gates[0, :, 1].isnan().tolist() == [True, True, False]
    assert found.gradient_norm.isnan().tolist() == [True, False, False]
    torch.testing.assert_close(found.gradient_norm_by_thought[2], torch.tensor([0.1, 0.2]))
    assert 0.5 <= found.majority <= 1


def test_the_figure_marks_stages_and_draws_gates(staged):
    from analyses import training_curves

    found = training_curves(staged)
    figure = found.figure()
    drawn = {trace.name: trace for trace in figure.data if trace.name}
    assert list(drawn["read"].y) == [0.25, 0.5, 0.75]
    assert any(note.text == "2" for note in figure.layout.annotations)
    assert "stage 2 with 2 thoughts: valid 1.000, test 1.000" in found.summary()
    table = found.to_frame()
    assert list(table[table.step == 20].stage) == [2, 2]
    assert list(table[table.step == 20]["read thought 2"]) == [1.0, 1.0]


def test_a_family_without_gates_has_no_panel_for_them(make_thinking_run):
    from analyses import training_curves

    found = training_curves(make_thinking_run("coconut"))
    assert found.gates.numel() == 0
    assert all("gates" not in note.text for note in found.figure().layout.annotations)
    assert "read thought 1" not in found.to_frame()


def test_a_run_that_thinks_has_no_stage_1(make_thinking_run):
    from analyses import stage_collapse

    with pytest.raises(ValueError, match="stage_curve is of such runs"):
        stage_collapse(make_thinking_run("agclr"))
