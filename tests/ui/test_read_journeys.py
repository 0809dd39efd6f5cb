"""Reading in a real browser, over the real server: from the question to the marked words."""

import io
import time
from pathlib import Path

import numpy as np
import pytest
from browsing import at_rest
from door import model_cache
from PIL import Image

from app.library import Library
from app.settings import Settings
from memory.pdf_boxes import boxes, page_size
from serving.catalogue import card

MODEL = "qwen2.5-coder-1.5b-instruct"
SHARED = Path(__file__).parents[3] / "shared" / "docs"
LINES = "[data-testid=stChatInputTextArea]"

pytestmark = pytest.mark.slow


@pytest.fixture
def shared():
    """A document of the shared folder."""
    import os

    folder = Path(os.environ.get("GISTREE_SHARED", SHARED.parent)) / "docs"
    if not folder.exists():
        pytest.skip(f"no documents in {folder}")
    return lambda name: folder / name


@pytest.fixture
def fill(tmp_path):
    """Puts files into the library of ``tmp_path`` and gives their documents."""

    def add(*paths: Path):
        place = str(tmp_path / "library")
        settings = Settings(library=place, models=model_cache(), model="http://127.0.0.1:9")
        with Library(settings=settings) as library:
            return [library.document(library.add(path).id) for path in paths]

    return add


def ask(page, question: str) -> None:
    field = page.locator(LINES)
    field.fill(question)
    field.press("Enter")


def pixels(page, box) -> np.ndarray:
    shot = Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB")
    return np.asarray(shot).astype(int)


def is_yellow(image: np.ndarray) -> np.ndarray:
    return (image[..., 0] > 200) & (image[..., 2] < 190) & (image[..., 0] - image[..., 2] > 50)


def marked(page, path: Path, page_index: int, quote: str) -> tuple[float, float]:
    """Share of the boxes that the quote has in the file that is marked; share of the rest."""
    frame = page.locator(".page img").bounding_box()
    view = page.locator(".view").bounding_box()
    width, height = page_size(path, page_index)
    image = pixels(page, view)
    yellow, inside = is_yellow(image), np.zeros(image.shape[:2], dtype=bool)
    lines = boxes(path, page_index, quote)
    assert lines
    for line in lines:
        left = frame["x"] - view["x"] + line.left / width * frame["width"]
        right = frame["x"] - view["x"] + line.right / width * frame["width"]
        top = frame["y"] - view["y"] + line.top / height * frame["height"]
        bottom = frame["y"] - view["y"] + line.bottom / height * frame["height"]
        inside[round(top) + 1 : round(bottom) - 1, round(left) + 1 : round(right) - 1] = True
    around = inside.copy()
    for axis in (0, 1):  # the boxes' own edges belong to neither
        for step in (-3, -2, -1, 1, 2, 3):
            around |= np.roll(inside, step, axis)
    assert inside.any()
    assert yellow[inside].mean() > 0.3  # the rest is ink
    is_paper = image.min(axis=2) > 200
    return 1 - float(is_paper[inside].mean()), float(yellow[~around].mean())


def test_from_the_question_to_the_marked_words_over_refresh_stop_and_kill(
    start_site, open_page, shared, fill, tmp_path
):
    if not card(MODEL).is_in(model_cache()):
        pytest.skip(f"{MODEL} is not in the model cache")
    path = shared("good/fhs-3.0.pdf")
    (document,) = fill(path)
    site = start_site(GISTREE_MODEL=MODEL, GISTREE_READER="oprag")
    page = open_page(f"{site.url}/read", width=1400)
    page.set_default_timeout(120_000)

    def choose_oprag() -> None:
        page.get_by_label("Reader", exact=True).click()
        page.get_by_role("option", name="oprag", exact=True).click()
        at_rest(page)

    choose_oprag()
    ask(page, "What must the contents of the root filesystem be adequate to do?")
    page.get_by_role("button", name="Stop").wait_for()
    page.get_by_text("searched for").wait_for()
    page.reload()  # in mid-answer: nothing is lost, nothing begins again
    page.get_by_text("searched for").wait_for()
    page.get_by_role("button", name="Citation 1").first.click()
    page.locator(".page .highlight").first.wait_for()
    at_rest(page)
    opened = page.url.split("source=")[1].replace("%3A", ":")
    start, end = map(int, opened.split(":")[1].split("-"))
    number = int(page.get_by_label("Page", exact=True).input_value())
    assert number == document.page_at(start).index + 1
    covered, elsewhere = marked(page, path, number - 1, document.text[start:end])
    assert covered > 0.98
    assert elsewhere < 0.001
    page.get_by_role("button", name="Next page").click()
    page.locator(f'.view[aria-label$="Page {number + 1}"]').wait_for()
    page.get_by_role("button", name="Close").click()

    ask(page, "List all directories of the root filesystem, and what each of them is for.")
    page.locator(".gt-draft").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("You stopped this answer").wait_for()
    assert page.locator(".gt-draft").inner_text().strip()

    ask(page, "List all optional directories, and what each of them is for.")
    page.get_by_role("button", name="Stop").wait_for()
    page.locator(".gt-steps").last.wait_for()
    time.sleep(1.5)  # what is there is kept every second
    site.kill()
    site.start()
    page.reload()
    page.get_by_text("The server ended before this answer did").wait_for()
    page.get_by_text("Ask again").nth(2).wait_for()
    assert page.get_by_text("Ask again").count() == 3


@pytest.mark.parametrize(
    ("name", "part"),
    [("nasty/vertical-kanbun-ja.pdf", 2), ("nasty/rtl-persian-book.pdf", 8)],
)
def test_japanese_and_persian_pages_are_marked_where_the_quote_stands(
    site, open_page, shared, fill, name, part
):
    path = shared(name)
    (document,) = fill(path)
    start = document.pages[part].span.start + 150
    page = open_page(f"{site.url}/read?source={document.id}:{start}-{start + 60}", width=1400)
    page.locator(".page .highlight").first.wait_for()
    at_rest(page)
    number = document.page_at(start).index
    covered, elsewhere = marked(page, path, number, document.text[start : start + 60])
    assert covered > 0.98
    assert elsewhere < 0.001


def test_chinese_text_is_marked_and_searched(site, open_page, shared, fill, tmp_path):
    text = shared("nasty/enc-gb18030.txt").read_bytes().decode("gb18030")[:30_000]
    (tmp_path / "zh.txt").write_text(text, encoding="utf-8")
    (document,) = fill(tmp_path / "zh.txt")
    start = document.text.index("文件系统", 9_000)
    page = open_page(f"{site.url}/read?source={document.id}:{start}-{start + 4}", width=420)
    mark = page.locator(".text mark")
    mark.wait_for()
    assert mark.inner_text() == "文件系统"
    assert is_yellow(pixels(page, mark.bounding_box())).mean() > 0.5
    page.get_by_label("Search in this document").fill("Debian")
    page.get_by_label("Search in this document").press("Enter")
    page.get_by_text(" of ", exact=False).filter(has_text="1").first.wait_for()
    page.locator(".text mark", has_text="Debian").wait_for()


def test_a_hostile_page_loads_and_runs_nothing(site, open_page, fill, tmp_path):
    hostile = '<script>document.title="owned"</script><img src=x onerror=alert(1)>\n\n[a](http://e)'
    (tmp_path / "evil.txt").write_text(hostile, encoding="utf-8")
    (document,) = fill(tmp_path / "evil.txt")
    page = open_page(f"{site.url}/read?source={document.id}:0-60")
    page.locator(".text").wait_for()
    at_rest(page)
    assert "owned" not in page.title()
    assert page.locator(".text img, .text script, .text a").count() == 0
    assert "onerror=alert(1)" in page.locator(".text").inner_text()
