"""Real models and data, in the folder that DATA names: `make test-real DATA=folder`."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data():
    """The folder; what it lacks is named, and nothing is skipped."""
    folder = Path(os.environ.get("DATA", "")).expanduser()
    if not os.environ.get("DATA") or not folder.is_dir():
        pytest.fail(f"DATA={os.environ.get('DATA', '')!r} is no folder; run make test-real DATA=…")
    return folder


@pytest.fixture(scope="session")
def find(data):
    """Look a file up by its name, anywhere in the folder."""

    def find(name):
        found = sorted(data.rglob(name))
        if not found:
            pytest.fail(f"{data} holds no {name}; the README says how to fetch it")
        return found[0]

    return find
