import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.blocks import Block, Info, Outline, PageStart
from memory.canonical import Builder, build
from memory.document import Problem, Span
from memory.errors import EmptyDocument


def document(*parts, name="some tale.pdf"):
    return build(parts, id="1", name=name, size_bytes=1)


def section_texts(made):
    return [(s.title, s.level, s.span.of(made.text)) for s in made.sections]


def test_blocks_are_parted_by_blank_lines_and_items_by_line_ends():
    made = document(
        Block("A tale", "heading", 1),
        Block("Once."),
        Block("- a", "item"),
        Block("- b", "item"),
        Block("x | y\r\n1 | 2", "table"),
        Block("[1] A note.", "note"),
        Block("[2] Another.", "note"),
    )
    assert made.text == (
        "A tale\n\nOnce.\n\n- a\n- b\n\nx | y\n1 | 2\n\n[1] A note.\n\n[2] Another."
    )


def test_a_paragraph_over_a_page_end_is_one():
    made = document(
        PageStart("1"), Block("He went to the"), PageStart("2"), Block("door.", joins=" "),
        PageStart("3"), Block("それ"), PageStart("4"), Block("から。", joins=""),
    )  # fmt: skip
    assert made.text == "He went to the door.\n\nそれから。"
    assert [page.span.of(made.text) for page in made.pages] == [
        "He went to the", "door.", "それ", "から。",
    ]  # fmt: skip


def test_no_paragraph_goes_on_in_a_note():
    made = document(Block("It went"), Block("[1] Note.", "note"), Block("on.", joins=" "))
    assert made.text == "It went\n\n[1] Note.\n\non."


def test_a_seam_cannot_make_the_text_anything_but_nfc():
    made = document(Block("cafe"), Block("\u0301 noir", joins=""))
    assert unicodedata.is_normalized("NFC", made.text)


def test_empty_pages_stand_where_they_are():
    made = document(
        PageStart(), PageStart(source="unread"), PageStart(), Block("one"), PageStart(),
        Block("two"), PageStart(source="blank"),
    )  # fmt: skip
    assert [(p.span, p.source) for p in made.pages] == [
        (Span(0, 0), "blank"),
        (Span(0, 0), "unread"),
        (Span(0, 3), "text"),
        (Span(5, 8), "text"),
        (Span(8, 8), "blank"),
    ]
    assert made.pages_read == 4
    assert made.page_at(6).index == 3


def test_a_section_runs_to_the_next_of_its_level_or_higher():
    made = document(
        Block("Preface."), Block("One", "heading", 1), Block("a"), Block("One.1", "heading", 2),
        Block("b"), Block("One.2", "heading", 2), Block("c"), Block("Two", "heading", 1),
    )  # fmt: skip
    assert section_texts(made) == [
        ("One", 1, "One\n\na\n\nOne.1\n\nb\n\nOne.2\n\nc\n\n"),
        ("One.1", 2, "One.1\n\nb\n\n"),
        ("One.2", 2, "One.2\n\nc\n\n"),
        ("Two", 1, "Two"),
    ]
    assert made.section_path(made.text.index("b")) == ("One", "One.1")


def test_the_own_contents_of_a_file_come_before_its_headings():
    made = document(
        PageStart(), Block("running head", "heading", 1), Block("rest of the last"),
        Block("2.1  The  Whale"), Block("text"), Block("Ahab", "heading", 1), Block("more"),
        PageStart(), Block("end"),
        Outline("The Whale", 1, 0), Outline("AHAB", 2, 0), Outline("Not There", 3, 0),
        Outline("Last", 1, 1), Outline("Nowhere", 1, 7), Outline("\x00", 1, 0),
    )  # fmt: skip
    assert [(s.title, s.span.of(made.text).split("\n")[0]) for s in made.sections] == [
        ("The Whale", "2.1  The  Whale"),
        ("AHAB", "Ahab"),
        ("Not There", "Ahab"),
        ("Last", "end"),
    ]


def test_a_short_title_is_not_found_in_the_middle_of_a_line():
    made = document(
        Block("It says I am here"),
        Block("I"),
        Block("text"),
        Outline("I", 1, 0),
        Outline("X", 1, 0),
    )
    assert made.sections[0].span.start == made.text.index("\nI\n") + 1


def test_a_block_number_of_the_contents_is_taken_at_its_word():
    made = document(PageStart(), Block("a"), Block("b"), Block("c"), Outline("C", 1, 0, 2))
    assert made.sections[0].span.of(made.text) == "c"


@pytest.mark.parametrize(
    ("parts", "title"),
    [
        ([Info("a", "  The \n Tale "), Block("Head", "heading", 1)], "The Tale"),
        ([Block("x"), Block("He\nad", "heading", 1), Block("y", "heading", 2)], "He ad"),
        ([Block("1", "heading", 1), Block("2", "heading", 1)], "some tale"),
        ([Info("a", "Microsoft Word - tale.doc"), Block("x")], "some tale"),
        ([Info("a", "untitled"), Block("x")], "some tale"),
        ([Info("a", "---"), Block("x")], "some tale"),
    ],
)  # fmt: skip
def test_a_title_is_what_the_file_says_or_its_one_highest_heading_or_its_name(parts, title):
    assert document(*parts).title == title


def test_a_document_without_letters_is_refused_with_the_reason():
    with pytest.raises(EmptyDocument, match=r"^'a\.pdf' holds no text$"):
        document(PageStart(), Block("*** -- …"), name="a.pdf")
    with pytest.raises(EmptyDocument, match=r"page 1 is a picture \(and 1 more\); print it$"):
        document(Problem("page 1 is a picture", "print it", 0), Problem("b", "c"), name="a.pdf")


def test_nothing_unstorable_survives():
    made = document(
        Info("te\x00xt", "T\x00", "e\x00"),
        Problem("w\x00\ud800", "r\x00"), PageStart("\x00i\ud800"),
        Block("a\x00b\ud800c\u202ed\x1b[31m"), Block("h\x00", "heading", 1),
    )  # fmt: skip
    everything = repr((made, made.text, made.pages, made.sections, made.problems))
    assert "\\x" not in everything
    assert "\\ud" not in everything
    assert made.text == "ab\ufffdcd\n\nh"
    assert made.language == ""


def test_pages_that_never_came_are_unread():
    builder = Builder()
    for part in (Info("a", num_pages=4), PageStart(), Block("one"), PageStart()):
        builder.add(part)
    builder.lost("it crashed", "save it anew")
    made = builder.document(id="1", name="a", size_bytes=1)
    assert [page.source for page in made.pages] == ["text", "unread", "unread", "unread"]
    assert made.problems == (Problem("it crashed", "save it anew", 1),)


TEXT = st.text(max_size=40)
PARTS = st.one_of(
    st.builds(PageStart, TEXT, st.sampled_from(["text", "ocr", "blank", "unread"])),
    st.builds(
        Block,
        TEXT,
        st.sampled_from(["paragraph", "heading", "item", "table", "code", "note", "caption"]),
        st.integers(-1, 9),
        st.sampled_from([None, " ", ""]),
    ),
    st.builds(Outline, TEXT, st.integers(-1, 9), st.integers(-2, 12), st.integers(-2, 12)),
    st.builds(Problem, TEXT, TEXT, st.none() | st.integers(0, 9)),
)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=25))
def test_pages_and_sections_of_any_parts_are_in_order_and_in_bounds(parts):
    made = document(Block("x"), *parts)
    text = made.text
    assert unicodedata.is_normalized("NFC", text)
    assert not any(c < " " and c not in "\n\t" for c in text)
    assert text.encode("utf-8")
    assert "\n\n\n" not in text
    assert len(made.pages) == 1 + sum(isinstance(p, PageStart) for p in parts)
    for before, after in zip(made.pages, made.pages[1:], strict=False):
        assert before.span.end <= after.span.start
    seen = "".join("".join(page.span.of(text).split()) for page in made.pages)
    assert seen == "".join(text.split())
    assert all(0 <= s.span.start <= s.span.end <= len(text) for s in made.sections)
    starts = [s.span.start for s in made.sections]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("first", "title"),
    [
        ("Persuasion", "Persuasion"),
        ("It was a dark night.", "book"),
        ("A line that runs on and on, far longer than any title would be, and then some", "book"),
    ],
)
def test_a_first_line_that_stands_alone_before_the_chapters_is_the_title(first, title):
    parts = [Info("text/plain"), PageStart(), Block(first)]
    parts += [Block(f"Chapter {n}", "heading", 1) for n in (1, 2)]
    assert build(parts, id="x", name="book.txt", size_bytes=1).title == title
