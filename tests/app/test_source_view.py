"""The source as a person looks at it: what is marked is the quote, on pages and in text."""

import base64
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.source_text import PART_CHARS, find_in, paragraphs, part_at, parts
from app.source_view import Sources
from memory.document import Document, Page, Section, Span
from memory.errors import PasswordNeeded, UnreadableDocument
from memory.page_process import PageProcess
from memory.parsing import read_document
from memory.pdf_boxes import occurrence_of

SHARED = Path(os.environ.get("GISTREE_SHARED", Path(__file__).parents[3] / "shared")) / "docs"
needs_documents = pytest.mark.skipif(not SHARED.exists(), reason="no documents in GISTREE_SHARED")


def plain(text: str, *sections: Section) -> Document:
    return Document(
        "a" * 64, "a.txt", "A", "text/plain", text, (Page(0, "", Span(0, len(text))),), sections
    )


def test_parts_tile_the_text_and_end_between_paragraphs():
    text = "\n\n".join(f"Paragraph {i}. " + "word " * 60 for i in range(200))
    spans = parts(plain(text))
    assert "".join(span.of(text) for span in spans) == text
    assert len(spans) > 10
    assert all(span.of(text).startswith("Paragraph") for span in spans)
    assert max(map(len, spans)) <= PART_CHARS * 3 // 2
    assert all(part_at(spans, span.start) == i for i, span in enumerate(spans))


@pytest.mark.parametrize("text", ["", "a", "x" * 50_000, "字" * 30_000, "\n" * 20_000])
def test_any_text_has_parts(text):
    spans = parts(plain(text))
    assert spans
    assert "".join(span.of(text) for span in spans) == text


def test_a_mark_is_shown_where_it_is_also_over_two_paragraphs():
    text = "One\n\nThe lamp went out.\nIt was nine.\n\nThe Petrel sank."
    mark = Span(text.index("went"), text.index(" Petrel"))
    shown = paragraphs(
        plain(text, Section("One", 1, Span(0, len(text)))), Span(0, len(text)), [mark]
    )
    assert [p.level for p in shown] == [1, 0, 0]
    assert ["".join(run for run, _ in p.runs) for p in shown] == text.split("\n\n")
    assert [run for p in shown for run, is_marked in p.runs if is_marked] == [
        "went out.\nIt was nine.",
        "The",
    ]


def test_search_finds_in_any_case_over_line_ends_and_takes_signs_as_letters():
    document = plain("The Lamp\nwent out (at nine). the lamp  went on. ランプが消えた。")
    assert [hit.match for hit in find_in(document, "lamp WENT")] == ["Lamp\nwent", "lamp  went"]
    assert [hit.match for hit in find_in(document, "(at")] == ["(at"]
    assert [hit.after for hit in find_in(document, "ランプ")] == ["が消えた。"]
    assert find_in(document, "  ") == []


def test_which_of_the_same_quotes_is_meant():
    assert occurrence_of("Yes.", "No. Yes, he said. Yes. ") == 2
    assert occurrence_of("Yes.", "") == 0
    assert occurrence_of("...", "a") == 0


@pytest.fixture
def look():
    """A document of the shared folder, open for looking."""
    opened = []

    def open_one(name: str):
        path = SHARED / name
        document = read_document(path)
        sources = Sources(lambda _: document, lambda _: path)
        opened.append(sources)
        return sources.open(document.id)

    yield open_one
    for sources in opened:
        sources.close()


def ink(source, part: int, box) -> float:
    """Share of dark pixels in a box of a page's picture."""
    png = base64.b64decode(source.sheet(part, width_pixels=1000).picture.png)
    image = np.asarray(Image.open(io.BytesIO(png)).convert("L"))
    height, width = image.shape
    left, top, right, bottom = box
    area = image[
        int(top * height) : int(bottom * height) + 1, int(left * width) : int(right * width) + 1
    ]
    return float((area < 128).mean())


@needs_documents
def test_a_quote_is_highlighted_where_its_ink_is_and_the_other_one_like_it_is_not(look):
    source = look("good/fhs-3.0.pdf")
    part = 20
    places = [m.span for m in source.find("directory") if source.parts[part].contains(m.span)]
    boxes = [source.sheet(part, width_pixels=1000, marks=[p]).highlights for p in places]
    assert len(places) >= 2
    assert len({box for each in boxes for box in each}) == sum(map(len, boxes))
    assert all(ink(source, part, box) > 0.05 for each in boxes for box in each)
    assert [b[0][1] for b in boxes] == sorted(b[0][1] for b in boxes)


@needs_documents
def test_a_page_that_cannot_be_drawn_says_why_and_the_next_one_is(look):
    process = PageProcess()
    locked = SHARED / "nasty" / "enc-user-password-r6.pdf"
    with pytest.raises(PasswordNeeded):
        process.draw(locked, 0, width_pixels=100)
    good = SHARED / "good" / "fhs-3.0.pdf"
    with pytest.raises(UnreadableDocument):
        process.draw(good, 9_999, width_pixels=100)
    process.timeout_s = 0.0001
    with pytest.raises(UnreadableDocument, match="takes too long"):
        process.draw(good, 0, width_pixels=2_000)
    process.timeout_s = 20
    assert process.draw(good, 0, width_pixels=100).width == 612
    process.close()
