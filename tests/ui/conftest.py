"""The real server and a real browser, for journeys; a page alone, for its logic.

`site` starts ``gistree ui`` over an empty library without a language model; `start_site` starts
one with settings of its own. `open_page` opens browser pages that wait until Streamlit is at rest.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
from door import Door, model_cache

CHROMIUM = Path(os.environ.get("GISTREE_CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Site:
    """A server of the pages, as a process of its own."""

    def __init__(self, door: Door) -> None:
        self.door = door
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Site":
        self.log = (self.door.home / "server.log").open("ab")
        self.process = self.door.start(
            "ui", "--port", str(self.port), "--no-browser", stdout=self.log, stderr=self.log
        )
        for _ in range(300):
            if self.process.poll() is not None:
                break
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/_stcore/health"):
                return self
            time.sleep(0.1)
        raise AssertionError((self.door.home / "server.log").read_text())

    def stop(self) -> None:
        """As a person does: by Ctrl-C."""
        self._end(lambda process: process.terminate())

    def kill(self) -> None:
        """As a power cut does."""
        self._end(lambda process: process.kill())

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        if self.process is not None:
            how(self.process)
            self.process.wait(30)
            self.log.close()
            self.process = None


@pytest.fixture
def start_site(tmp_path) -> Iterator[Callable[..., Site]]:
    """Starts servers: ``start_site(GISTREE_MODEL=…, home=…)``; they end with the test."""
    sites: list[Site] = []

    def start(home: Path | None = None, **env: str) -> Site:
        env = {"GISTREE_MODEL": "http://127.0.0.1:9"} | env  # no model: nothing listens there
        site = Site(Door(home or tmp_path, model_cache(), env)).start()
        sites.append(site)
        return site

    yield start
    for site in sites:
        site.stop()


@pytest.fixture
def site(start_site) -> Site:
    """A server over an empty library, without a language model."""
    return start_site()


@pytest.fixture(scope="session")
def chromium():
    """A browser without a window."""
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens pages in browsers of their own: ``open_page(url, dark=True, width=400)``."""
    contexts = []

    def open_one(url: str, *, dark: bool = False, width: int = 1280, height: int = 900):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            service_workers="block",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.goto(url)
        at_rest(page)
        return page

    yield open_one
    for context in contexts:
        context.close()


def at_rest(page) -> None:
    """Waits until the script behind a page has ended."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
