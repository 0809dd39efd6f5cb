"""Through the real server with a real browser: what a person does with the library."""

import os
import re
import time
from pathlib import Path

import pytest
from browsing import at_rest

pytestmark = pytest.mark.slow

DOCS = Path(os.environ.get("GISTREE_SHARED", Path(__file__).parents[3] / "shared")) / "docs"
GOOD = ("fhs-3.0.pdf", "wasteland.epub", "policy-controlfields.docx")
NASTY = (
    "broken-cyclic-outline.pdf",
    "docx-billion-laughs.docx",
    "empty-zero-bytes.epub",
    "enc-bad-length.pdf",
    "enc-user-password-r6.pdf",
    "epub-drm.epub",
    "invalid-header-only.pdf",
    "prompt-injection.html",
    "bidi-zero-width.txt",
    "ελληνικά – 文書 (final) #1 %20.txt",
)


@pytest.fixture
def long_tale(tmp_path) -> Path:
    path = tmp_path / "tale.txt"
    path.write_text(
        "\n\n".join(f"Paragraph {n} tells of lamps, reefs and {n} sailors." for n in range(40_000))
    )
    return path


def upload(page, *paths) -> None:
    page.set_input_files("input[type=file]", list(paths))


def job(page, name):
    return page.locator('[class*="st-key-job-"]', has_text=name)


def document(page, name):
    return page.locator('[class*="st-key-document-"]', has_text=name)


def documents_folder(site) -> list[Path]:
    return [path for path in site.door.library.glob("files/*/*") if path.is_file()]


@pytest.mark.skipif(not DOCS.exists(), reason=f"no documents in {DOCS}")
def test_good_and_nasty_files_at_once(site, open_page):
    page = open_page(site.url)
    outside = []
    page.on("request", lambda request: outside.append(request.url))
    page.on("dialog", lambda dialog: outside.append(f"dialog {dialog.message}"))
    upload(page, *(DOCS / "good" / name for name in GOOD), *(DOCS / "nasty" / n for n in NASTY))
    page.get_by_role("button", name="Pause").first.wait_for()
    second = open_page(site.url)  # sees the same work
    second.get_by_role("button", name=re.compile("Pause|Details")).first.wait_for()
    page.reload()
    at_rest(page)
    page.wait_for_function(
        "() => ![...document.querySelectorAll('button')].some(b => b.innerText.includes('Pause'))",
        timeout=120_000,
    )
    for name in GOOD:
        document(page, name).first.wait_for()
    for name in ("epub-drm.epub", "invalid-header-only.pdf", "docx-billion-laughs.docx"):
        assert job(page, name).get_by_role("alert").inner_text()
    document(page, "ελληνικά – 文書 (final) #1 %20.txt").wait_for()
    locked = job(page, "enc-user-password-r6.pdf")
    locked.get_by_label("Password").first.fill("not this one")
    locked.get_by_role("button", name="Open it").click()
    locked.get_by_text("not the right one").wait_for()
    assert [url for url in outside if not url.startswith(site.url)] == []


def test_a_file_that_is_there_already_is_recognised(site, open_page, tmp_path):
    tale = tmp_path / "lamp.txt"
    tale.write_text("The lamp went out at nine.")
    page = open_page(site.url)
    upload(page, tale)
    document(page, "lamp.txt").wait_for()
    tale.rename(tmp_path / "again.txt")
    upload(page, tmp_path / "again.txt")
    job(page, "again.txt").get_by_text("was in the library already, as lamp").wait_for()
    assert len(documents_folder(site)) == 1


def test_a_whole_folder(site, open_page, tmp_path):
    folder = tmp_path / "shelf"
    (folder / "deep").mkdir(parents=True)
    (folder / "lamp.txt").write_text("The lamp went out at nine.")
    (folder / "deep" / "reef.txt").write_text("The reef lies west of the tower.")
    (folder / ".hidden").write_text("A system's own file.")
    page = open_page(site.url)
    page.get_by_role("radio", name="A folder").click()
    page.locator("input[type=file][webkitdirectory]").wait_for(state="attached")
    at_rest(page)
    upload(page, folder)
    document(page, "lamp.txt").wait_for()
    document(page, "reef.txt").wait_for()
    assert len(documents_folder(site)) == 2


def test_delete_undo_and_delete_leaves_nothing(site, open_page, tmp_path):
    (tmp_path / "lamp.txt").write_text("The xylophone lamp went out at nine.")
    page = open_page(site.url)
    upload(page, tmp_path / "lamp.txt")
    document(page, "lamp.txt").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    document(page, "lamp.txt").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").wait_for()
    page.get_by_text("Nothing here yet").wait_for()
    site.stop()
    left = [path for path in site.door.library.rglob("*") if path.is_file()]
    assert not any(b"xylophone" in path.read_bytes() for path in left)


def test_cancelled_in_mid_ingest_within_seconds(site, open_page, long_tale):
    page = open_page(site.url)
    upload(page, long_tale)
    page.get_by_text("Indexing").wait_for(timeout=60_000)
    start = time.monotonic()
    job(page, "tale.txt").get_by_role("button", name="Cancel").click()
    page.get_by_text("Nothing here yet").wait_for()
    assert time.monotonic() - start < 10
    assert documents_folder(site) == []
    assert list(site.door.library.glob("incoming/*")) == []


def test_the_server_is_killed_in_mid_ingest_and_started_again(site, open_page, long_tale):
    page = open_page(site.url)
    long_tale.write_text(long_tale.read_text()[:300_000])
    upload(page, long_tale)
    page.get_by_text(re.compile(r"Indexing [1-9]")).wait_for(timeout=60_000)
    site.kill()
    site.start()
    page = open_page(site.url)
    document(page, "tale.txt").wait_for(timeout=120_000)


def test_two_browsers_see_one_library(site, open_page, tmp_path):
    (tmp_path / "lamp.txt").write_text("The lamp went out at nine.")
    one, other = open_page(site.url), open_page(site.url)
    upload(one, tmp_path / "lamp.txt")
    document(other, "lamp.txt").get_by_role("button", name="Details").click()
    other.get_by_label("Title").fill("<img src=x onerror=alert(1)> **The Lamp**")
    other.get_by_role("button", name="Keep").click()
    one.reload()
    document(one, "<img src=x onerror=alert(1)> **The Lamp**").wait_for()


def test_a_narrow_dark_window_and_keys_alone(site, open_page, tmp_path):
    page = open_page(site.url, dark=True, width=380)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    wanted = "document.activeElement.matches('button:has(*)') && document.activeElement.innerText"
    for _ in range(30):
        page.keyboard.press("Tab")
        if "Read the sample book" in (page.evaluate(wanted) or ""):
            break
    page.keyboard.press("Enter")
    job(page, "persuasion.txt").wait_for()
