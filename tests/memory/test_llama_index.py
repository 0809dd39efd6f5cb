from importlib.util import find_spec

import pytest
from parsed import pages, parse, texts, whole, written, zipped

from memory.archives import ArchiveLimits
from memory.errors import DocumentTooLarge, UnreadableDocument, UnsupportedFormat
from memory.parsers.llama_index import LlamaIndexParser
from serving.errors import MissingExtra

has_extra = find_spec("llama_index") is not None
needs_extra = pytest.mark.skipif(not has_extra, reason="the extra 'llama-index' is not installed")


@pytest.mark.skipif(has_extra, reason="the extra 'llama-index' is installed")
def test_without_the_extra_its_install_line_is_told(tmp_path):
    with pytest.raises(MissingExtra, match=r"gistree\[llama-index\]"):
        parse("llama_index", zipped(tmp_path, "a.xlsx", {"xl/workbook.xml": "<x/>"}))


def test_other_formats_are_named(tmp_path):
    with pytest.raises(UnsupportedFormat, match="PPTX"):
        parse("llama_index", written(tmp_path, "a.xyz", "x"))


def test_bombs_are_refused_before_a_library_unpacks_them(tmp_path):
    path = zipped(tmp_path, "a.xlsx", {"xl/workbook.xml": "x" * 200_000})
    with pytest.raises(DocumentTooLarge):
        list(LlamaIndexParser(limits=ArchiveLimits(part_bytes=1000)).parse(path))


@pytest.mark.extras
@needs_extra
def test_slides_are_pages_with_their_tables_and_notes(tmp_path):
    from pptx import Presentation

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Whales"
    slide.placeholders[1].text = "Ahab lost a leg."
    slide.notes_slide.notes_text_frame.text = "Speak slowly."
    second = deck.slides.add_slide(deck.slide_layouts[5])
    table = second.shapes.add_table(2, 2, 0, 0, 3_000_000, 1_000_000).table
    table.cell(1, 1).text = "zebra"
    deck.save(tmp_path / "a.pptx")
    parts = parse("llama_index", tmp_path / "a.pptx")
    assert [page.label for page in pages(parts)] == ["1", "2"]
    assert parts[0].paged
    for said in ("Whales", "Ahab lost a leg.", "Speak slowly.", "zebra"):
        assert said in whole(parts)


@pytest.mark.extras
@needs_extra
def test_sheets_are_parts_with_a_row_a_line(tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["item", "price"])
    book.active.append(["kettle, red", 12.5])
    book.active.append(["pot", 3])
    book.create_sheet("Two").append(["k"])
    book["Two"].append(["marigold"])
    book.save(tmp_path / "a.xlsx")
    assert texts(parse("llama_index", tmp_path / "a.xlsx"), "table") == [
        "item | price\nitem: kettle, red | price: 12.5\nitem: pot | price: 3",
        "k\nmarigold",
    ]


@pytest.mark.extras
@needs_extra
def test_damaged_slides_are_named(tmp_path):
    path = zipped(tmp_path, "a.pptx", {"ppt/presentation.xml": "<x/>"})
    with pytest.raises(UnreadableDocument, match="PPTX"):
        parse("llama_index", path)
