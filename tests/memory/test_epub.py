import pytest
from parsed import blocks, epub, outline, pages, parse, problems, shared, texts, whole, zipped
from twins import share_in_order, words

from memory.archives import ArchiveLimits
from memory.errors import (
    DocumentProtected,
    DocumentTooLarge,
    EmptyDocument,
    UnreadableDocument,
)
from memory.parsers.epub import EpubParser

NAV = (
    '<nav epub:type="toc"><ol><li><a href="one.xhtml">One</a><ol>'
    '<li><a href="one.xhtml#mid">Middle</a></li></ol></li>'
    '<li><span>Part</span><ol><li><a href="two.xhtml">Two</a></li></ol></li></ol></nav>'
)
NAV_ITEM = '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'


def test_files_in_reading_order_are_pages_and_the_contents_an_outline(tmp_path):
    nav = f'<html xmlns:epub="http://www.idpf.org/2007/ops"><body>{NAV}</body></html>'
    path = epub(
        tmp_path,
        {"one.xhtml": "<p>First.</p><p>Before <i id='mid'>middle</i>.</p>", "two.xhtml": "Second."},
        extra={"nav.xhtml": nav},
        items=NAV_ITEM,
    )
    parts = parse("epub", path)
    assert (parts[0].title, parts[0].language, parts[0].num_pages) == ("Lamp", "en", 2)
    assert not parts[0].paged
    assert texts(parts) == ["First.", "Before middle.", "Second."]
    assert [(o.title, o.level, o.page, o.block) for o in outline(parts)] == [
        ("One", 1, 0, 0),
        ("Middle", 2, 0, 1),
        ("Part", 1, 1, 0),
        ("Two", 2, 1, 0),
    ]


def test_printed_pages_are_the_pages_where_the_book_marks_them(tmp_path):
    mark = '<span epub:type="pagebreak" title="{}" id="p{}">{}</span>'.format
    one = f"<p>Front.</p><p>{mark(1, 1, 1)}On one, {mark(2, 2, 2)}on two.</p>"
    parts = parse("epub", epub(tmp_path, {"one.xhtml": one, "two.xhtml": "<p>Still two.</p>"}))
    assert parts[0].paged
    assert [page.label for page in pages(parts)] == ["", "1", "2"]
    assert [(b.text, b.joins) for b in blocks(parts)] == [
        ("Front.", None),
        ("On one,", None),
        ("on two.", " "),
        ("Still two.", None),
    ]


def test_notes_in_another_file_keep_the_mark_of_their_reference(tmp_path):
    ref = '<a epub:type="noteref" href="notes.xhtml#n{}">*</a>'.format
    parts = parse(
        "epub",
        epub(
            tmp_path,
            {
                "one.xhtml": f"<p>Lamp{ref(1)} and wind{ref(2)}.</p>",
                "notes.xhtml": "<aside epub:type='footnote' id='n1' hidden=''>* Oil.</aside>"
                "<aside epub:type='footnote' id='n2'><p>West.</p></aside>",
            },
        ),
    )
    assert texts(parts) == ["Lamp[1] and wind[2].", "[1] Oil.", "[2] West."]


def test_what_is_beside_the_main_line_comes_last_and_is_not_lost(tmp_path):
    path = epub(
        tmp_path,
        {"one.xhtml": "<p>Main.</p>"},
        extra={"key.xhtml": "<html><body><p>Answer key.</p></body></html>"},
        items='<item id="k" href="key.xhtml" media-type="application/xhtml+xml"/>',
        spine='<itemref idref="k" linear="no"/>',
    )
    assert texts(parse("epub", path)) == ["Main.", "Answer key."]


def test_pages_that_are_not_well_formed_are_read_all_the_same(tmp_path):
    body = "<p>Tom &amp; Jerry&nbsp;&mdash; <a id='x'/>ends<br>here.<p>Next &bogus; one."
    parts = parse("epub", epub(tmp_path, {"one.xhtml": body}))
    assert texts(parts) == ["Tom & Jerry — ends\nhere.", "Next &bogus; one."]


def test_a_picture_without_text_is_named_as_unread(tmp_path):
    parts = parse("epub", epub(tmp_path, {"a.xhtml": "Text.", "b.xhtml": "<img src='b.png'/>"}))
    assert [page.source for page in pages(parts)] == ["text", "unread"]
    assert [problem.page for problem in problems(parts)] == [1]


def test_a_damaged_file_is_named_and_the_rest_read(tmp_path):
    path = epub(tmp_path, {"a.xhtml": "alpha " * 50, "b.xhtml": "beta " * 50})
    data = bytearray(path.read_bytes())
    at = data.find(b"OPS/a.xhtml") + len("OPS/a.xhtml") + 6
    data[at : at + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    parts = parse("epub", path)
    assert "beta" in whole(parts)
    assert [problem.page for problem in problems(parts)] == [0]


def test_limits_hold_for_what_really_comes_out(tmp_path):
    path = epub(tmp_path, {"a.xhtml": "a" * 300_000})
    limits = ArchiveLimits(part_bytes=100_000)
    with pytest.raises(DocumentTooLarge, match="unpacks to"):
        list(EpubParser(limits).parse(path))
    ratio = ArchiveLimits(ratio=20, ratio_from_bytes=1000)
    with pytest.raises(DocumentTooLarge):
        list(EpubParser(ratio).parse(path))


def test_an_epub_without_its_parts_says_so(tmp_path):
    path = zipped(tmp_path, "x.epub", {"mimetype": "application/epub+zip"})
    with pytest.raises(UnreadableDocument, match="no package document"):
        parse("epub", path)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("empty-zero-bytes.epub", EmptyDocument),
        ("bomb-epub-700MB.epub", DocumentTooLarge),
        ("epub-drm.epub", DocumentProtected),
    ],
)
def test_nasty_books_are_refused_with_their_reason(name, error):
    with pytest.raises(error):
        parse("epub", shared(f"nasty/{name}"))


def test_a_missing_container_is_recovered():
    parts = parse("epub", shared("nasty/epub-no-container.epub"))
    assert whole(parts) == "Text that can still be found."


def test_scrambled_fonts_are_no_protection_of_the_text():
    fonts = parse("epub", shared("nasty/epub-obfuscated-fonts.epub"))
    assert texts(fonts) == texts(parse("epub", shared("good/wasteland.epub")))


def test_a_comic_names_its_pages_as_unread():
    parts = parse("epub", shared("nasty/epub-images-only.epub"))
    assert whole(parts) == ""
    assert len(problems(parts)) == 8


def test_arabic_is_in_logical_order():
    assert "ما هو السرطان؟" in texts(parse("epub", shared("nasty/rtl-arabic.epub")), "heading")


@pytest.mark.slow
def test_two_thousand_files_are_read():
    parts = parse("epub", shared("nasty/huge-mahabharata-2000-files.epub"))
    assert len(pages(parts)) == len(outline(parts)) == 2014
    assert len(whole(parts)) > 6_400_000


def test_verse_keeps_its_lines_and_numbers_and_notes():
    parts = parse("epub", shared("good/wasteland.epub"))
    assert any(
        "Out of this stony rubbish? Son of man,[1] 20\nYou cannot" in t for t in texts(parts)
    )
    assert "[1] Line 20. Cf. Ezekiel 2:1." in texts(parts, "note")
    assert len(outline(parts)) == 6


def test_moby_dick_is_the_same_as_an_epub():
    parts = parse("epub", shared("good/moby-dick.epub"))
    twin = words(whole(parse("text", shared("good/moby-dick.txt"))))
    assert share_in_order(twin, words(whole(parts))) >= 0.99
    titles = [entry.title for entry in outline(parts)]
    assert [t for t in titles if t.startswith("Chapter ")][-1].startswith("Chapter 135")


def test_printed_page_numbers_of_the_anthology():
    parts = parse("epub", shared("good/childrens-literature.epub"))
    labels = [page.label for page in pages(parts) if page.label]
    assert labels[0] == "169"
    assert labels == [str(n) for n in range(169, 169 + len(labels))]
    assert parts[0].paged


def test_the_reference_manual_keeps_notes_and_numbers():
    parts = parse("epub", shared("good/debian-policy.epub"))
    assert "5.6.12. Version" in texts(parts, "heading")
    assert any(o.title == "5.6.12. Version" for o in outline(parts))
    assert sum(note.startswith("[") for note in texts(parts, "note")) > 80


def test_mathematics_is_readable():
    parts = parse("epub", shared("good/linear-algebra.epub"))
    assert "x_1 = 4" in whole(parts)
    assert len(pages(parts)) == 94


def test_listings_of_the_japanese_guide_keep_their_lines():
    parts = parse("epub", shared("good/debmake-guide-ja.epub"))
    assert any("\n" in code for code in texts(parts, "code"))
    assert len(blocks(parts, "code")) > 200


def test_the_encyclopaedia_article_keeps_its_tables():
    parts = parse("epub", shared("good/georgia-britannica.epub"))
    assert len(blocks(parts, "table")) >= 1
    assert outline(parts)[1].title == "Climate and Soils"
