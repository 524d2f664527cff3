"""The page on a free port, and a real Chromium in front of it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
# Streamlit asks for these below the view's own path first, and then below the root
EXPECTED = ("/_stcore/health", "/_stcore/host-config")


@pytest.fixture(scope="session")
def address(page_folder):
    """The address of a page that shows tiny runs and those that ship."""
    shutil.copytree(ROOT / ".streamlit", page_folder / ".streamlit")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app")]
    log = page_folder / "page.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=page_folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health", server, log)
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def chromium():
    """A Chromium; the tests fail where there is none."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        pytest.fail("the browser tests need a chromium on the PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def imported(chromium, address):
    """The first session imports torch, which takes its time; the others find it there."""
    tab = chromium.new_page(base_url=address)
    tab.set_default_timeout(180_000)
    tab.goto("/")
    tab.get_by_role("heading", name="Runs").wait_for()
    tab.close()


@pytest.fixture
def tab(chromium, address, imported):
    """A session of its own; it fails on what the browser complains of and on exceptions shown."""
    tab = chromium.new_page(base_url=address, viewport={"width": 1400, "height": 1000})
    tab.set_default_timeout(60_000)
    complaints = []

    def hear(message):
        where = message.location.get("url", "")
        if message.type == "error" and not where.endswith(EXPECTED):
            complaints.append(f"{message.text} ({where})")

    tab.on("console", hear)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    shown = [box.inner_text() for box in tab.get_by_test_id("stException").all()]
    tab.close()
    assert not complaints
    assert not shown


def _wait_for(url, server, log):
    for _ in range(240):
        if server.poll() is not None:
            pytest.fail(f"streamlit stopped:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"streamlit did not answer within a minute:\n{log.read_text()}")
