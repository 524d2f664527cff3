"""The folder with the real data files, as `make test-real DATA=folder` gives it."""

from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--data", default="", help="folder with the real data files")


@pytest.fixture
def real(request):
    """The path of a real file, or a failure that names it."""
    given = request.config.getoption("--data")

    def real(name):
        if not given:
            pytest.fail(f"{name} is wanted: make test-real DATA=folder names where it is")
        path = Path(given) / name
        if not path.is_file():
            pytest.fail(f"{path} does not exist")
        return path

    return real
