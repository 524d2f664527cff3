"""A page opened without a browser."""

from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app" / "streamlit_app.py"


@pytest.fixture
def open_page(page_folder, monkeypatch, tmp_path):
    """Open a view in a session of its own; keyword arguments are in its address."""
    from streamlit.testing.v1 import AppTest

    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "none")
    monkeypatch.chdir(page_folder)

    def open_page(view="runs", **address):
        page = AppTest.from_file(APP, default_timeout=30)
        page.query_params.update({"run": "tiny-looped"} | address)
        page.run()
        return page.switch_page(f"views/{view}.py").run() if view != "runs" else page

    return open_page
