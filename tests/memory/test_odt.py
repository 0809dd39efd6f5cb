import pytest
from parsed import blocks, parse, shared, texts, whole, zipped
from twins import share_in_order, words

from memory.errors import PasswordNeeded, UnreadableDocument

NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"'
    for name, full in [
        *(("office", "office"), ("text", "text"), ("table", "table"), ("style", "style")),
        *(("draw", "drawing"), ("svg", "svg-compatible")),
    ]
)


def odt(tmp_path, body, styles="", manifest=""):
    content = (
        f"<office:document-content {NAMES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    files = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}
    if manifest:
        files["META-INF/manifest.xml"] = manifest
    return parse("odt", zipped(tmp_path, "a.odt", files))


def test_headings_paragraphs_spaces_and_breaks(tmp_path):
    parts = odt(
        tmp_path,
        '<text:h text:outline-level="2">Head</text:h>'
        '<text:p>a<text:s text:c="3"/>b<text:tab/><text:span>c<text:line-break/>d</text:span> e'
        "<office:annotation><text:p>remark</text:p></office:annotation></text:p>"
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>",
    )
    assert [(b.kind, b.level, b.text) for b in blocks(parts)] == [
        ("heading", 2, "Head"),
        ("paragraph", 0, "a b c\nd e"),
    ]


def test_lists_are_numbered_where_their_style_says_so(tmp_path):
    styles = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1"/>'
        '<text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    body = (
        '<text:list text:style-name="L"><text:list-item><text:p>one</text:p><text:list>'
        "<text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
    )
    assert texts(odt(tmp_path, body, styles)) == ["1. one", "- inner", "2. two"]


def test_notes_tables_and_boxes(tmp_path):
    note = (
        '<text:note text:note-class="{}"><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>{}</text:p></text:note-body></text:note>"
    ).format
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    body = (
        f"<text:p>One{note('endnote', 'End.')} two{note('footnote', 'Foot.')}.</text:p>"
        f"<table:table><table:table-row>{cell('a')}{cell('b')}</table:table-row><table:table-row>"
        f"{cell('c')}<table:covered-table-cell/></table:table-row></table:table>"
        "<text:p>Text<draw:frame><draw:text-box><text:p>In the box.</text:p></draw:text-box>"
        "<svg:desc>A whale</svg:desc></draw:frame></text:p>"
    )
    parts = odt(tmp_path, body)
    assert texts(parts) == [
        *("One[1] two[2].", "[2] Foot.", "a | b\nc |", "Text A whale", "In the box.", "[1] End.")
    ]


def test_a_password_is_named(tmp_path):
    manifest = "<m><file-entry><encryption-data/></file-entry></m>"
    with pytest.raises(PasswordNeeded, match="without one"):
        odt(tmp_path, "", manifest=manifest)


def test_a_package_without_content_is_named(tmp_path):
    with pytest.raises(UnreadableDocument, match="no OpenDocument text"):
        parse("odt", zipped(tmp_path, "a.odt", {"mimetype": "x"}))


def test_moby_dick_is_the_same_in_libreoffice():
    parts = parse("odt", shared("good/moby-dick-part.odt"))
    mine = words(whole(parts))
    twin = words(whole(parse("text", shared("good/moby-dick.txt"))))
    assert share_in_order(mine, twin) >= 0.99
    assert share_in_order(twin[: len(mine)], mine) >= 0.99
    assert "Chapter 2. The Carpet-Bag." in texts(parts, "heading")
