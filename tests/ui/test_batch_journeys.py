"""Through the real server with a real browser: files of questions, and what memory shows."""

import csv
import io
import os
import re
from pathlib import Path

import pytest
from browsing import at_rest
from door import model_cache

from app.library import Library
from app.settings import Settings
from serving.catalogue import card

pytestmark = pytest.mark.slow

TINY = "smollm2-135m-instruct"
QUESTIONS = "id,question\n" + "".join(
    f"q{n},How many sacks did the miller sell in {1800 + n}?\n" for n in range(8)
)
TALE = "\n\n".join(
    f"Chapter {n}\n\n"
    + f"In the year {1800 + n} the miller of Ansty sold {n + 3} sacks of flour. " * 25
    for n in range(1, 7)
)


@pytest.fixture
def tale(tmp_path):
    """A library with one document, made before the server starts."""
    if not card(TINY).is_in(model_cache()):
        pytest.skip(f"{TINY} is not in the model cache")
    settings = Settings(library=str(tmp_path / "library"), models=model_cache(), model=TINY)
    with Library(settings=settings) as library:
        library.add(TALE.encode(), name="The Miller.txt")


def keep(page, name: str) -> None:
    """A picture for whoever looks at the run."""
    folder = os.environ.get("GISTREE_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_a_file_of_questions_is_watched_paused_gone_on_with_and_fetched(
    start_site, open_page, tale, tmp_path
):
    site = start_site(GISTREE_MODEL=TINY, GISTREE_READER="oprag")
    page = open_page(f"{site.url}/batch")
    page.set_default_timeout(90_000)
    page.set_input_files(
        "input[type=file]",
        {"name": "sacks.csv", "mimeType": "text/csv", "buffer": QUESTIONS.encode()},
    )
    page.get_by_text("sacks.csv").first.wait_for()
    at_rest(page)
    page.get_by_role("button", name="Answer them").click()
    job = page.locator('[class*="st-key-job-"]', has_text="sacks.csv")
    job.get_by_text(re.compile(r"[1-9]\d* of 8")).wait_for()
    page.locator("th", has_text="How many sacks").first.wait_for()
    keep(page, "batch-running")
    job.get_by_role("button", name="Pause").click()
    job.get_by_text("Paused").wait_for()
    site.kill()  # the machine goes down meanwhile
    site.start()
    page.goto(f"{site.url}/batch")
    at_rest(page)
    job.get_by_role("button", name="Go on").click()
    job.get_by_text("✓").wait_for()
    at_rest(page)
    keep(page, "batch-done")
    with page.expect_download() as fetched:
        page.get_by_role("button", name="CSV").first.click()
    text = Path(fetched.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == [f"q{n}" for n in range(8)]
    assert {row["status"] for row in rows} == {"ok"}


def test_a_tree_opens_and_closes_and_a_question_lights_its_way(start_site, open_page, tale):
    site = start_site(GISTREE_MODEL=TINY, GISTREE_READER="oprag")
    page = open_page(f"{site.url}/read")
    page.set_default_timeout(90_000)
    field = page.locator("[data-testid=stChatInputTextArea]")
    field.fill("How many sacks did the miller of Ansty sell in the year 1804?")
    field.press("Enter")
    page.get_by_text("tokens read").first.wait_for()
    page.goto(f"{site.url}/memory")
    at_rest(page)
    page.get_by_text("Look at its memory").click()
    page.get_by_role("heading", name="Tree").wait_for()
    at_rest(page)
    keep(page, "memory")
    inner = page.locator("details details").first
    if inner.count():
        was_open = inner.get_attribute("open") is not None
        inner.locator("summary").first.click()
        assert (inner.get_attribute("open") is not None) != was_open
    root = page.locator("details").first
    assert root.get_attribute("open") is not None
    root.locator("summary").first.click()
    assert root.get_attribute("open") is None
