import pytest
from parsed import blocks, parse, problems, shared, texts, whole, written
from twins import share_in_order, words

from memory.errors import UnreadableDocument


def rtf(tmp_path, body):
    return parse("rtf", written(tmp_path, "a.rtf", rb"{\rtf1\ansi\ansicpg1252 " + body + b"}"))


def test_paragraphs_lines_and_characters(tmp_path):
    parts = rtf(
        tmp_path,
        rb"One\line two \'e9 \u8212?\u-10179?\u-8704? \ldblquote x\rdblquote\par Next\~a\par",
    )
    assert texts(parts) == ["One\ntwo é —😀 “x”", "Next a"]


def test_each_font_has_its_code_page(tmp_path):
    fonts = rb"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}"
    parts = rtf(tmp_path, fonts + rb"\f0 \'e9 {\f1 \'e9} {\f2 \'93\'fa\'96{}} \'e9\par")
    assert texts(parts)[0].startswith("é й 日")
    assert texts(parts)[0].endswith("é")
    assert problems(parts)


def test_headings_by_outline_level_and_by_style(tmp_path):
    parts = rtf(
        tmp_path,
        rb"{\stylesheet{\s3\b heading 2;}{\s4 Body;}}\pard\outlinelevel0 Book\par"
        rb"\pard\s3 Chapter\par\pard\s4 Text\par",
    )
    assert [(b.kind, b.level) for b in blocks(parts)] == [
        ("heading", 1),
        ("heading", 2),
        ("paragraph", 0),
    ]


def test_tables_notes_and_what_is_no_text(tmp_path):
    parts = rtf(
        tmp_path,
        rb"{\info{\title The title}{\author A}}{\header page 1}{\*\unknown x}{\pict 00ff}"
        rb"Seen{\super\chftn}{\footnote {\super\chftn} A note.\par}.{\v hidden}\par"
        rb"\trowd\intbl a\cell b\cell\row\intbl c\cell \cell\row\pard After\par"
        rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\bin3 \}}x.\par",
    )
    assert parts[0].title == "The title"
    assert texts(parts) == ["Seen[1].", "[1] A note.", "a | b\nc |", "After", "linkx."]


def test_groups_without_end_are_refused(tmp_path):
    with pytest.raises(UnreadableDocument, match="groups"):
        rtf(tmp_path, b"{" * 20_000)


def test_moby_dick_is_the_same_in_rtf():
    parts = parse("rtf", shared("good/moby-dick-part.rtf"))
    mine = words(whole(parts))
    twin = words(whole(parse("text", shared("good/moby-dick.txt"))))
    assert share_in_order(mine, twin) >= 0.99
    assert share_in_order(twin[: len(mine)], mine) >= 0.99
    assert len(blocks(parts, "heading")) > 55


def test_cyrillic_code_page():
    parts = parse("rtf", shared("nasty/rtf-cp1251.rtf"))
    assert texts(parts)[0] == "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"


def test_list_labels_are_kept():
    items = texts(parse("rtf", shared("nasty/rtf-complex-list.rtf")), "item")
    assert items[:5] == ["1. One", "2. Two", "a. Three", "b. Four", "i. Five"]
