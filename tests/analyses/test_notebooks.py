"""The notebooks run from top to bottom on the shipped runs, with fewer rows than they print."""

import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "analyses" / "notebooks").glob("*.ipynb"))

MANY = re.compile(r"\b(n|rows|most_rows)=(\d{2,})")  # rows that a cell asks for
BATCH = re.compile(r'\bbatch\("(\w+)", (\d{2,})\)')
WHOLE = re.compile(r'analyse\("compare", ')  # asks a whole split of each run


def fewer(source):
    """A cell with a tenth of its rows."""
    source = MANY.sub(lambda found: f"{found[1]}={max(int(found[2]) // 10, 8)}", source)
    source = BATCH.sub(lambda found: f'batch("{found[1]}", {max(int(found[2]) // 10, 8)})', source)
    source = source.replace("evaluate(run, split", "evaluate(run, n=50, split")
    return WHOLE.sub('analyse("compare", rows=40, run=', source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebook_runs_and_draws_its_figures(path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as the suite itself: cores may be few and busy
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = fewer(cell.source)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert not [output for output in outputs if output.output_type == "error"]
    assert "application/vnd.plotly.v1+json" in kinds
