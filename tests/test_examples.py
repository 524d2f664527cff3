"""The examples are what a stranger would write; the conformance tests hold them to the contracts.

Those tests go through the registries, into which tests/conftest.py puts the examples.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
LINES = {
    "injecting.py": 30,
    "effective_dimension.py": 40,
    "project_out.py": 25,
    "modular_sum.py": 90,
}
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(text):
    """Numbers of the lines that hold code: no blank lines, comments or docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {
        line
        for token in tokens
        if token.type not in NO_CODE and token.string
        for line in range(token.start[0], token.end[0] + 1)
    }
    return code - docstrings


def test_there_is_one_of_each_kind():
    assert {path.name for path in EXAMPLES.glob("*.py")} == LINES.keys()


@pytest.mark.parametrize("name", LINES)
def test_an_example_is_short(name):
    text = (EXAMPLES / name).read_text()
    if name == "injecting.py":  # beside its recurrence
        (recurrence,) = (
            node
            for node in ast.parse(text).body
            if isinstance(node, ast.ClassDef) and node.name == "Inject"
        )
        own = set(range(recurrence.lineno, recurrence.end_lineno + 1))
        assert len(code_lines(text) - own) <= LINES[name]
    else:
        assert len(code_lines(text)) <= LINES[name]


def test_the_worked_edit_of_contributing_adds_one_vector_everywhere(speaker, world):
    from typing import Literal

    import torch

    from workbench.edits.base import PlaceEdit
    from workbench.edits.firing import Firing
    from workbench.registries import Edits

    text = (EXAMPLES.parent / "CONTRIBUTING.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    scope = {"EDITS": Edits("edit", "edits", {}), "PlaceEdit": PlaceEdit, "Firing": Firing}
    scope |= {"Literal": Literal, "torch": torch, "Tensor": torch.Tensor, "__name__": "noisy"}
    exec(block, scope)
    model, batch = speaker("looped"), world.batch("test_id", 4)
    place = "blocks.0.hook_attn_out"
    edit = scope["Noise"](place=place, size=0.5, loops=[0])
    _, clean = model.run_with_cache(**batch.inputs)
    with model.hooks(edit.hooks(model, batch)):
        _, noisy = model.run_with_cache(**batch.inputs)
    added = noisy[place][0] - clean[place][0]
    torch.testing.assert_close(added, added[:1, :1].expand_as(added), atol=1e-5, rtol=0)
    assert added.abs().max() > 0.1


@pytest.mark.parametrize("name", LINES)
def test_an_example_imports_public_names_alone(name):
    tree = ast.parse((EXAMPLES / name).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in imports for alias in node.names]
    assert names and not any(each.startswith("_") for each in names)


def test_what_an_example_registers_can_be_looked_up():
    from analyses import ANALYSES
    from workbench import EDITS, FAMILIES, TASKS

    assert "injecting" in FAMILIES and "modular_sum" in TASKS
    assert "project_out" in EDITS and "effective_dimension" in ANALYSES
    assert ANALYSES.about("effective_dimension").startswith("How many dimensions")


def test_a_sum_is_right_and_its_partial_sums_are_the_bridges():
    from workbench.tasks import build_task

    task = build_task("modular_sum", modulus=7, n_train=40, n_test=10)
    row = task.examples(task.question("3 5 6 1"))[0]
    assert row["answer"] == "1" and row["bridges"] == ["1", "0"] and row["additions"] == 3
    with pytest.raises(ValueError, match="a sum has 2 to 6"):
        task.question("3")


def test_what_is_projected_out_is_gone(speaker, world):
    import torch

    from workbench.edits import edit_hooks, parse_edits

    model, batch = speaker("looped"), world.batch("test_id", 4)
    place, direction = "blocks.0.hook_attn_out", [1.0, 2.0] * 8
    edits = parse_edits([{"do": "project_out", "place": place, "direction": direction}])
    with model.hooks(edit_hooks(edits, model, batch)):
        _, cache = model.run_with_cache(**batch.inputs)
    along = cache[place] @ torch.tensor(direction)
    torch.testing.assert_close(along, torch.zeros_like(along), atol=1e-5, rtol=0)


def test_states_on_a_line_fill_one_dimension(speaker, world):
    import torch

    from analyses import ANALYSES
    from workbench.hooks import at_loop

    model, batch = speaker("looped"), world.batch("test_id", 6)

    def put(state, hook):
        return torch.arange(6.0)[:, None, None] * torch.ones_like(state)

    with model.hooks([("recurrence.hook_state_post", at_loop(put, 0))]):
        found = ANALYSES["effective_dimension"](model, batch)
    assert found.ratio[0, 0] == pytest.approx(1, abs=1e-3) and found.ratio[0, 1] > 1.5


def test_the_worked_example_of_contributing_runs(speaker, world, tmp_path):
    from analyses import ANALYSES
    from workbench.settings.registry import plug

    text = (EXAMPLES.parent / "CONTRIBUTING.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "state_norm.py").write_text(block)
    plug(str(tmp_path / "state_norm.py"))
    try:
        found = ANALYSES["state_norm"](speaker("looped", n_loops=3), world.batch("test_id", 4))
        assert len(found.to_frame()) == 6 and len(found.figure().data) == 2
        assert "n=4" in found.summary()
    finally:
        del ANALYSES._things["state_norm"]
