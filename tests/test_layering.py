"""Who may import whom: app → analyses → workbench → transformer_lens. The arrows, as a test."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "workbench": {"analyses", "app", "streamlit", "plotly", "pandas", "sklearn"},
    "analyses": {"app", "streamlit"},
    "app": {"torch", "transformer_lens"},
}
ROOMS = {  # each imports from those before it alone
    "workbench": "settings hooks words kinds capabilities registries components recurrence models "
    "tasks pretrained instruments edits runs training recipes",
    "analyses": "kit read change measure graphs training analyse report",
    "app": "session controls views command_line",
}
OLD_NAMES = {"complaint", "evaluation", "files", "recipe", "vocabulary"}  # of modules that moved
OLD_NAMES |= {"attention", "labels", "logit_lens"}
KNOWS_TRANSFORMER_LENS = ("hooks/", "components/", "models/", "pretrained/convert.py")


def imported(path, everywhere=False):
    """Top-level names that a file imports, at module level or in its functions as well."""
    tree = ast.parse(path.read_text())
    names = set()
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def files(package):
    return sorted((ROOT / package).rglob("*.py"))


def rooms_of_imports(path, package):
    """Rooms of a package that a file imports from when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            first, *inner = node.module.split(".")
            if first == package:
                yield from inner[:1] or [alias.name for alias in node.names]


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_from_those_before_it_alone(package):
    order = ROOMS[package].split()
    seen, broken = set(), set()
    for path in files(package):
        room = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if room in OLD_NAMES | {"__init__", "cli", "streamlit_app"}:
            continue
        seen.add(room)
        for other in rooms_of_imports(path, package):
            if order.index(other) > order.index(room):
                broken.add(f"{path.relative_to(ROOT)} imports from {other}")
    assert not broken and seen == set(order)


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_follow_the_arrows(package):
    assert files(package)
    broken = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(package)
        for name in imported(path) & FORBIDDEN[package]
    }
    assert not broken


def test_only_one_file_looks_up_to_the_command_line_and_by_name():
    upward = {
        path.relative_to(ROOT / "workbench").as_posix()
        for path in files("workbench")
        if imported(path, everywhere=True) & {"analyses", "app"}
    }
    named = [path for path in files("workbench") if '"app.command_line"' in path.read_text()]
    assert upward == set()
    assert [path.name for path in named] == ["cli.py"]
    assert len(named[0].read_text().splitlines()) < 12


def test_the_command_line_imports_nothing_of_the_project_before_a_verb_runs():
    assert not imported(ROOT / "app" / "command_line.py") & {"analyses", "app", "workbench"}


def test_analyses_and_page_never_touch_what_lies_above_or_two_below():
    broken = {
        f"{path.relative_to(ROOT)} imports {name}"
        for package, names in {"analyses": {"app", "streamlit"}, "app": {"torch"}}.items()
        for path in files(package)
        for name in imported(path, everywhere=True) & names
    }
    assert not broken


def test_transformer_lens_is_known_in_few_places():
    knowing = {
        path.relative_to(ROOT / "workbench").as_posix()
        for path in files("workbench")
        if "transformer_lens" in imported(path, everywhere=True)
    }
    assert all(name.startswith(KNOWS_TRANSFORMER_LENS) for name in knowing), knowing


def test_no_module_puts_off_its_annotations():
    putting_off = [
        path
        for package in FORBIDDEN
        for path in files(package)
        if "from __future__ import annotations" in path.read_text()
    ]
    assert not putting_off


def test_importing_the_package_imports_no_torch():
    program = (
        "import sys, workbench, workbench.cli; "
        "print(sorted({'torch', 'transformer_lens', 'numpy', 'pandas', 'plotly', 'analyses'} "
        "& set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
