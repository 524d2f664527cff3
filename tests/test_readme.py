"""What the README lists is what the registries hold."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


def column(heading):
    """First cells, in backticks, of the table below a line that begins so."""
    table = README.split(heading, 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_analysis_is_in_the_table():
    from analyses.kit.listing import ANALYSES

    assert sorted(column("| analysis |")) == sorted(ANALYSES.homes)


def test_every_family_is_in_the_table():
    from workbench import FAMILIES

    assert column("| family |") == list(FAMILIES.homes)


def test_every_edit_is_listed():
    from workbench import EDITS

    (words,) = re.findall(r"`do` is one of (.*?), or of a plugin", README)
    assert words.split(", ") == list(EDITS.homes)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_files_that_a_document_names_exist(document):
    root = Path(__file__).parents[1]
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", (root / document).read_text())
    made = ("runs/", "results/", "checkpoints/NAME/", "steps/", "folder/", "latent_workbench")
    shipped = [name for name in named if not name.startswith(made) and "openai" not in name]
    rooms = [root, root / "workbench", root / "analyses", root / "analyses" / "notebooks"]
    missing = [n for n in shipped if not any((room / n).exists() for room in rooms)]
    assert shipped and not missing
