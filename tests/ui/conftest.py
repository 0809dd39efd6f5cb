"""The real server and a real browser, for journeys; a page alone, for its logic.

`site` starts ``gistree ui`` over an empty library without a language model; `start_site` starts
one with settings of its own. `open_page` opens browser pages that wait until Streamlit is at rest.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
sys.path.insert(0, str(Path(__file__).parent))
from browsing import Site, at_rest
from door import Door, model_cache
from fakes import HashingEmbedder

from app.library import Library
from app.service import Service, Services, set_services
from app.settings import Settings
from serving.scripted import ScriptedLLM

# The environment of the extras' tests has no Streamlit: there pages are not even looked at.
collect_ignore_glob = [] if find_spec("streamlit") else ["test_*.py"]

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


@pytest.fixture
def library(tmp_path, monkeypatch) -> Iterator[Library]:
    """The library that pages show when they are run alone (AppTest), with fakes for models."""
    monkeypatch.setattr("app.settings.settings_file", lambda: tmp_path / "settings.toml")
    settings = Settings(library=str(tmp_path / "library"), pruner="none", models=tmp_path / "none")
    library = Library(settings=settings, model=ScriptedLLM([]), embedder=HashingEmbedder())
    set_services(Services(everybodys=Service(library=library)))
    yield library
    set_services(None)


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
def open_page(chromium, request):
    """Opens pages in browsers of their own: ``open_page(url, dark=True, width=400)``.

    How each looked at the end is kept as a picture in the folder that ``GISTREE_PICTURES`` names.
    """
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
    folder = os.environ.get("GISTREE_PICTURES")
    for number, context in enumerate(contexts):
        if folder:
            name = re.sub(r"[^\w-]+", "-", request.node.name)[:100]
            path = Path(folder) / f"{name}-{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            context.pages[0].screenshot(path=str(path))
        context.close()
