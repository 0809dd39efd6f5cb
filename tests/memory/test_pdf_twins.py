"""PDF against the same text in another format."""

import pytest
from parsed import blocks, shared
from twins import share_anywhere, share_in_order, share_in_runs, words

from memory.blocks import Block, PageStart
from memory.parsers.pdf import PdfParser
from serving.plugins import load

pytestmark = pytest.mark.slow


def words_of(parts, *, notes: bool) -> list[str]:
    text = ""
    for block in blocks(parts):
        if (block.kind == "note") is notes:
            text += ("\n" if block.joins is None else block.joins) + block.text
    return words(text)


def without_first_page(parts):
    """Without the title page, which lists the contents in the one and not in the other."""
    page = -1
    for part in parts:
        page += isinstance(part, PageStart)
        if page > 0 or not isinstance(part, Block):
            yield part


def test_debian_policy_reads_as_its_epub():
    pdf = list(PdfParser(ocr=False).parse(shared("good/debian-policy.pdf")))
    parser = load("memory.parsers", "epub")()
    epub = list(without_first_page(parser.parse(shared("good/debian-policy.epub"))))
    # Body against body, notes against notes: the EPUB has the notes of a chapter at its end.
    # What lacks are mostly the addresses of links, which the EPUB writes out and the PDF does not.
    assert share_in_order(words_of(epub, notes=False), words_of(pdf, notes=False)) > 0.992
    assert share_in_order(words_of(epub, notes=True), words_of(pdf, notes=True)) > 0.992


def test_debian_reference_in_japanese_reads_as_its_text():
    pdf = list(PdfParser(ocr=False).parse(shared("good/debian-reference-ja.pdf")))
    text = list(load("memory.parsers", "text")().parse(shared("good/debian-reference-ja.txt")))
    a, b = words_of(text, notes=False), words_of(pdf, notes=False)
    # The PDF sets its tables where there is room, so the order of passages differs: within a
    # passage it is compared, each sign as a word. The captions are English in one of them.
    assert share_in_runs(a, b) > 0.99
    assert share_anywhere(a, b) > 0.97
