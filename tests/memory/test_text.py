import pytest
from parsed import blocks, pages, parse, problems, shared, texts, whole, written

from memory.errors import EmptyDocument

PROSE = (
    "The lamp stood in the window of the house at the end of the road, and every night\n"
    "Mira lit it before the ships came in. She had done so since her father went to sea\n"
    "and did not come back, and she would go on until the oil was gone or she was a well-\n"
    "known old woman whom nobody asked why.\n"
)


def text(tmp_path, content):
    return parse("text", written(tmp_path, "a.txt", content))


def test_lines_broken_at_a_column_become_paragraphs_again(tmp_path):
    parts = text(tmp_path, f"{PROSE}\n{PROSE}")
    assert len(texts(parts)) == 2
    assert "every night Mira lit it" in texts(parts)[0]
    assert "a well-known old woman" in texts(parts)[0]
    assert "\n" not in texts(parts)[0]


def test_verse_and_listings_keep_their_lines_in_wrapped_files(tmp_path):
    verse = "Tyger Tyger, burning bright,\nIn the forests of the night;\n"
    code = "    def f(x):\n        return x\n\n"
    parts = text(tmp_path, f"{PROSE}\n{verse}\n{code}\n{PROSE}")
    assert "Tyger Tyger, burning bright,\nIn the forests of the night;" in texts(parts)
    assert texts(parts, "code") == ["def f(x):\n    return x"]


def test_verse_alone_is_not_taken_for_prose(tmp_path):
    verse = (
        "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
        "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a "
        "date:\nSometime too hot the eye of heaven shines,\nAnd often is his gold complexion "
        "dimm'd;\nAnd every fair from fair sometime declines,\nBy chance, or nature's changing "
        "course, untrimm'd;"
    )
    assert texts(text(tmp_path, verse))[0] == verse


def test_japanese_lines_are_joined_without_a_space(tmp_path):
    line = "吾輩は猫である名前はまだ無いどこで生れたか頓と見当がつかぬ何でも薄暗いじめじめ"
    parts = text(tmp_path, f"{line}\n{line}\n終り。\n\n{line}\n{line}\n終り。\n")
    assert texts(parts) == [f"{line}{line}終り。"] * 2


def test_long_lines_are_paragraphs_without_blank_lines_between(tmp_path):
    parts = text(tmp_path, "\n".join(["long " * 40, "longer " * 40]))
    assert len(texts(parts)) == 2


def test_lists_are_items(tmp_path):
    parts = text(tmp_path, f"{PROSE}\n* one\n* two\n\n1. first\n2) second\n")
    assert texts(parts, "item") == ["* one", "* two", "1. first", "2) second"]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("CHAPTER XII", 1),
        ("Chapter 1. Loomings.", 1),
        ("Глава 3", 1),
        ("第十二章　海", 1),
        ("PREFACE", 1),
        ("2.1. What is the latest version?", 1),
    ],
)
def test_sure_headings(tmp_path, line, level):
    parts = text(tmp_path, f"Before.\n\n{line}\n\nAfter it comes a text.\n")
    assert [(b.text, b.level) for b in blocks(parts, "heading")] == [(line, level)]


@pytest.mark.parametrize(
    "line", ["Chapter houses are round in the north of England.", "12 men came.", "Book me a room."]
)
def test_sentences_are_no_headings(tmp_path, line):
    assert not blocks(text(tmp_path, f"Before.\n\n{line}\n\nAfter.\n"), "heading")


def test_levels_follow_parts_chapters_and_underlines(tmp_path):
    parts = text(tmp_path, "PART I\n\nChapter 1\n\nText\n\nUnder\n=====\n\n1.2 Deep\n\nx\n")
    assert [(b.text, b.level) for b in blocks(parts, "heading")] == [
        ("PART I", 1),
        ("Chapter 1", 2),
        ("Under", 2),
        ("1.2 Deep", 3),
    ]


def test_drawn_tables_become_rows(tmp_path):
    table = "+---+-----+\n|a  |b    |\n+---+-----+\n|one|two  |\n|   |three|\n+---+-----+\n"
    three = table + "|x  |y    |\n+---+-----+\n"
    assert texts(text(tmp_path, three), "table") == ["a | b\none | two three\nx | y"]


def test_form_feeds_at_line_ends_are_page_breaks_and_elsewhere_debris(tmp_path):
    parts = text(tmp_path, "one\n\ftwo, a\fb\n\f\n\fthree\n\f")
    assert [page.source for page in pages(parts)] == ["text", "text", "blank", "text"]
    assert texts(parts) == ["one", "two, a b", "three"]
    assert parts[0].paged


def test_bytes_that_mean_nothing_are_told(tmp_path):
    parts = text(tmp_path, "Größe und Maß – schön\n".encode() * 9 + b"gr\xc3\xb6\xff\xfe\n")
    assert "2 bytes are not valid" in problems(parts)[0].what


def test_zero_bytes():
    with pytest.raises(EmptyDocument):
        parse("text", shared("nasty/empty-zero-bytes.txt"))


def test_only_blanks_give_no_text():
    assert whole(parse("text", shared("nasty/empty-whitespace.txt"))) == ""


def test_the_faq_has_its_chapters_and_questions():
    parts = parse("text", shared("good/debian-faq.txt"))
    headings = [(b.level, b.text) for b in blocks(parts, "heading")]
    assert (1, "Chapter 1. Definitions and overview") in headings
    assert (2, "1.1. What is this FAQ?") in headings
    assert len(headings) > 140
    assert "all copies or substantial" not in texts(parts, "heading")


def test_the_japanese_reference_is_read_whole():
    parts = parse("text", shared("good/debian-reference-ja.txt"))
    assert len(whole(parts)) > 390_000
    assert len(blocks(parts, "heading")) > 440
    assert len(blocks(parts, "table")) > 160
    assert "システムインストール後のユーザー案内書として" in whole(parts)


def test_moby_dick_has_its_chapters():
    parts = parse("text", shared("good/moby-dick.txt"))
    assert len(blocks(parts, "heading")) >= 135
    assert texts(parts, "heading")[0] == "Chapter 1. Loomings."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("enc-euc-jp.txt", "ステムインストール後のユーザー案内書"),
        ("enc-gb18030.txt", "旨在作为一份 Debian 系统安装后的用户指南"),
        ("enc-koi8-r.txt", "Данное учебное руководство описывает сборку пакета"),
        ("enc-mixed-utf8-cp1252.txt", "Ünïcödé – “quotes”, naïve café, £5 and €10."),
        ("bidi-zero-width.txt", "Zero width joined words here."),
        ("bidi-zero-width.txt", "This line is reversed by RLO"),
        ("ελληνικά – 文書 (final) #1 %20.txt", "The password word in this file is marigold."),
    ],
)
def test_nasty_encodings_are_read(name, said):
    text = whole(parse("text", shared(f"nasty/{name}")))
    assert said in text.replace("??? ", "")
    assert "\ufffd" not in text or "mixed" in name


def test_control_characters_and_escapes_are_cleaned_away():
    text = whole(parse("text", shared("nasty/nul-and-control.txt")))
    assert "Call me Ishmael." in text
    assert not {c for c in text if c < " " and c != "\n"}
    assert "[31m" not in text


def test_one_line_of_five_megabytes():
    text = whole(parse("text", shared("nasty/one-line-5MB.txt")))
    assert len(text) > 4_900_000
