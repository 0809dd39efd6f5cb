"""Scanned pages: read in order, turned upright, and what is not read is said."""

import io

import pypdfium2
import pytest
from parsed import pages, parse, problems, shared, texts, whole
from pdf_made import lines, made_pdf
from PIL import Image
from twins import share_in_order, words

from memory.blocks import PageStart
from memory.ocr import Ocr, OcrLine, confidence, runs
from memory.parsers.pdf import PdfParser
from memory.pdf_boxes import render
from memory.pdf_columns import Gutters, in_order
from memory.pdf_scan import read_page


class FakeOcr(Ocr):
    """Reads the same lines at every page."""

    def __init__(self, found):
        super().__init__()
        self.found = found
        self.asked = 0

    def upright_lines(self, image):
        self.asked += 1
        return self.found, 0


def line(text, x, y, *, width=200.0, height=20.0, score=0.99, slope=0.0):
    return OcrLine(text, score, x, y, width, height, slope)


def scanned(folder, *images):
    """A PDF of pictures, each filling its page."""
    path = folder / "scan.pdf"
    first, *rest = images
    first.save(path, "PDF", resolution=150, save_all=True, append_images=rest)
    return path


def photographed(folder, page, *, turn=0):
    """A made page as a picture."""
    picture = Image.open(io.BytesIO(render(made_pdf(folder, [page]), 0, scale=2)))
    return picture.convert("L").rotate(turn, expand=True)


def read(path, ocr, *, index=0):
    document = pypdfium2.PdfDocument(path)
    try:
        return read_page(document, index, ocr, is_damaged=False)
    finally:
        document.close()


def test_a_slanted_page_is_straightened_and_its_columns_parted():
    import math

    slope = math.radians(3)
    found = []
    for n in range(8):
        for x, side in ((300, "left"), (750, "right")):
            y = 100 + 30 * n
            found.append(
                line(
                    f"the {side} column, line {n} of it",
                    x * math.cos(slope) - y * math.sin(slope),
                    x * math.sin(slope) + y * math.cos(slope),
                    width=380,
                    slope=slope,
                )
            )
    rows = in_order(runs(found, scale=2), Gutters())
    assert [row.text for row in rows] == [
        f"the {side} column, line {n} of it" for side in ("left", "right") for n in range(8)
    ]


def test_a_page_that_is_a_picture_takes_what_is_read_and_doubt_is_said(tmp_path):
    path = scanned(tmp_path, photographed(tmp_path, lines("Call me Ishmael.")))
    sure = read(path, FakeOcr([line("Call me Ishmael.", 200, 100)]))
    assert (sure.source, sure.problem) == ("ocr", None)
    assert [run.text for run in sure.words.runs] == ["Call me Ishmael."]
    unsure = read(path, FakeOcr([line("Ca11 rne lshmae1.", 200, 100, score=0.7)]))
    assert unsure.source == "ocr"
    assert "with doubt" in unsure.problem.what


@pytest.mark.parametrize("found", [[], [line("||;.~ i", 200, 100, score=0.5)]])
def test_a_picture_that_says_nothing_is_unread_by_number(tmp_path, found):
    path = scanned(tmp_path, *[photographed(tmp_path, lines("x"))] * 2)
    text = read(path, FakeOcr(found), index=1)
    assert text.source == "unread"
    assert text.problem.page == 1
    assert text.problem.remedy


def test_an_empty_sheet_is_blank_and_costs_no_reading(tmp_path):
    ocr = FakeOcr([line("dust", 10, 10)])
    assert read(scanned(tmp_path, Image.new("L", (600, 800), 250)), ocr).source == "blank"
    assert ocr.asked == 0


def test_without_ocr_a_scan_is_unread_and_says_how_to_read_it(tmp_path):
    path = scanned(tmp_path, photographed(tmp_path, lines("Call me Ishmael.")))
    parts = list(PdfParser(ocr=False).parse(path))
    assert [page.source for page in pages(parts)] == ["unread"]
    assert "OCR" in problems(parts)[0].remedy


def test_a_text_layer_over_a_scan_is_read_once_and_without_ocr():
    ocr = FakeOcr([])
    text = read(shared("nasty/sandwich-ocr.pdf"), ocr)
    assert (text.source, ocr.asked) == ("text", 0)
    found = whole(parse("pdf", shared("nasty/sandwich-ocr.pdf")))
    assert found.count("32 Track MIDI Sequence Recorder") == 1
    # The heights of its lines, as another OCR measured them, make no headings.
    assert len(texts(parse("pdf", shared("nasty/sandwich-ocr.pdf")), "heading")) < 4


def test_text_pages_with_pictures_are_not_read_as_pictures():
    ocr = FakeOcr([])
    document = pypdfium2.PdfDocument(shared("good/paper-nature-comms.pdf"))
    try:
        for index in range(len(document)):
            assert read_page(document, index, ocr, is_damaged=False).source == "text"
    finally:
        document.close()
    assert ocr.asked == 0


def test_letters_weigh_in_how_sure_a_page_is():
    assert confidence([]) == 0
    assert confidence([line("abcd", 0, 0, score=1), line("ab", 0, 0, score=0.4)]) == pytest.approx(
        0.8
    )


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 90, 180])
def test_a_scan_is_read_however_it_lies(tmp_path, turn):
    page = lines("Call me Ishmael. Some years ago,", "never mind how long precisely,", size=14)
    parts = parse("pdf", scanned(tmp_path, photographed(tmp_path, page, turn=turn)))
    assert [page.source for page in pages(parts)] == ["ocr"]
    found = words(whole(parts))
    assert share_in_order(words(" ".join(text for _, _, text, _ in page)), found) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["font-no-unicode-truetype.pdf", "font-no-unicode-type3.pdf"])
def test_letters_that_a_font_does_not_name_are_read_from_the_picture(name):
    parts = parse("pdf", shared(f"nasty/{name}"))
    assert [page.source for page in pages(parts)] == ["ocr"]
    assert all(text.isprintable() for text in texts(parts))
    assert any(c.isalnum() for c in whole(parts))


@pytest.mark.slow
def test_an_enormous_scan_is_read_at_a_bounded_size():
    parts = parse("pdf", shared("nasty/scan-typewriter-2400dpi.pdf"))
    assert "kopjes melk" in whole(parts)


@pytest.mark.slow
def test_a_skewed_scan_reads_as_its_text_layer():
    scan = words(whole(parse("pdf", shared("nasty/scan-rotated-skewed.pdf"))))
    layer = words(whole(parse("pdf", shared("nasty/sandwich-ocr.pdf"))))
    # The layer is another program's OCR of the same sheet, with slips of its own.
    assert share_in_order(layer, scan) > 0.95


@pytest.mark.slow
def test_a_scanned_page_of_two_columns_reads_as_its_twin(tmp_path):
    index = 4
    sheet = pypdfium2.PdfDocument.new()
    whole_scan = pypdfium2.PdfDocument(shared("nasty/scan-whole-paper.pdf"))
    sheet.import_pages(whole_scan, [index])
    sheet.save(tmp_path / "page.pdf")
    whole_scan.close()
    sheet.close()
    scan = words(whole(parse("pdf", tmp_path / "page.pdf")))
    twin = parse("pdf", shared("good/paper-nature-comms.pdf"))
    start = [n for n, part in enumerate(twin) if isinstance(part, PageStart)]
    text = words(whole(twin[start[index] : start[index + 1]]))
    assert share_in_order(text, scan) > 0.975  # 0.984 when this was written
