"""Results say what their edits touched."""

import pytest

from workbench.edits import parse_edits
from workbench.settings.config import ConfigError

ATTN = "blocks.0.hook_attn_out"


def test_an_edit_is_called_by_its_number_in_the_list(make_run):
    from analyses import analyse

    run = make_run("looped")
    edits = [{"do": "zero", "place": ATTN}, {"do": "zero", "place": ATTN, "loop": [0]}]
    with pytest.raises(ConfigError, match="edit 1 "):
        analyse("logit_lens", run, split="test_ood", edits=edits)


def test_evaluation_and_analyses_carry_what_was_touched(make_run):
    from analyses import analyse
    from workbench.runs.evaluation import evaluate

    run = make_run("looped")
    edits = [{"do": "zero", "place": ATTN, "loops": [1], "positions": "answer"}]
    found = evaluate(run, split="test_ood", edits=parse_edits(edits))
    assert found["touched"] == [{"rows": found["n"], "loops": [1], "positions": [2]}]
    result = analyse("logit_lens", run, split="test_ood", n=4, edits=edits)
    assert result.to_plain()["touched"] == [{"rows": 4, "loops": [1], "positions": [2]}]
    assert "1 edit (touched 4 rows)" in result.provenance.line()
