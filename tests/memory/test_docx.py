import pytest
from parsed import blocks, parse, problems, shared, texts, whole, zipped
from twins import share_in_order, words

from memory.errors import DocumentTooLarge, UnreadableDocument

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MORE = (
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
)


def docx(tmp_path, body, **parts):
    document = f"<w:document {W} {MORE}><w:body>{body}</w:body></w:document>"
    files = {"[Content_Types].xml": "<Types/>", "word/document.xml": document}
    files |= {f"word/{name}.xml": f"<w:{name} {W}>{xml}</w:{name}>" for name, xml in parts.items()}
    return parse("docx", zipped(tmp_path, "a.docx", files))


def p(text, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def listed(text, level=0):
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return p(text, number)


NUMBERING = (
    '<w:abstractNum w:abstractNumId="5">'
    '<w:lvl w:ilvl="0"><w:start w:val="4"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/>'
    '</w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>'
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>'
)
STYLES = (
    '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="x"/><w:basedOn w:val="Loop"/></w:style>'
)


def test_headings_come_from_styles_and_what_they_are_based_on(tmp_path):
    body = (
        p("Book", '<w:pStyle w:val="T"/>')
        + p("Chapter", '<w:pStyle w:val="Own"/>')
        + p("Deep", '<w:outlineLvl w:val="3"/>')
        + p("Text", '<w:pStyle w:val="Loop"/>')
    )
    parts = docx(tmp_path, body, styles=STYLES)
    assert [(b.kind, b.level) for b in blocks(parts)] == [
        ("heading", 1),
        ("heading", 2),
        ("heading", 4),
        ("paragraph", 0),
    ]


def test_lists_count_as_word_does_across_what_stands_between(tmp_path):
    body = (
        listed("a") + listed("b", 1) + listed("c", 1) + p("between") + listed("d") + listed("e", 1)
    )
    parts = docx(tmp_path, body, numbering=NUMBERING)
    assert texts(parts) == ["4. a", "4.a) b", "4.b) c", "between", "5. d", "5.a) e"]
    assert [b.kind for b in blocks(parts)].count("item") == 5


def test_footnotes_follow_their_paragraph_and_endnotes_the_text(tmp_path):
    ref = '<w:p><w:r><w:t>One</w:t><w:endnoteReference w:id="2"/></w:r></w:p>'
    ref += '<w:p><w:r><w:t>Two</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    parts = docx(
        tmp_path,
        ref + p("Three"),
        footnotes=f'<w:footnote w:id="2">{p("Foot.")}</w:footnote>',
        endnotes=f'<w:endnote w:id="2">{p("End.")}{p("More.")}</w:endnote>',
    )
    assert texts(parts) == ["One[1]", "Two[2]", "[2] Foot.", "Three", "[1] End.", "More."]


def test_all_cells_of_nested_tables_are_read(tmp_path):
    def table(*rows):
        lines = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
        return "<w:tbl>" + "".join(f"<w:tr>{line}</w:tr>" for line in lines) + "</w:tbl>"

    inner = table((p("c"), p("d")), (p("e"), p("f")))
    parts = docx(tmp_path, table((p("a"), p("b")), (inner, p("g"))))
    assert texts(parts, "table") == ["a | b\nc | d; e | f | g"]


def test_text_boxes_formulas_tabs_and_deletions(tmp_path):
    box = f"<w:txbxContent>{p('In the box.')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>A</w:t><w:tab/><w:t>B</w:t><w:br/><w:t>C</w:t></w:r>"
        f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
        "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new </w:t></w:r>"
        "</w:ins><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        "<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r>"
        "</m:den></m:f></m:oMath></w:p>"
    )
    assert texts(docx(tmp_path, body)) == ["A B\nC", "In the box.", "new (a + b)/2"]


def test_damaged_notes_do_not_take_the_text_with_them(tmp_path):
    files = {
        "word/document.xml": f"<w:document {W}><w:body>{p('Text')}</w:body></w:document>",
        "word/footnotes.xml": "<w:footnotes",
    }
    parts = parse("docx", zipped(tmp_path, "a.docx", files))
    assert texts(parts) == ["Text"]
    assert "word/footnotes.xml" in problems(parts)[0].what


def test_a_part_whose_name_is_damaged_is_named(tmp_path):
    path = zipped(tmp_path, "a.docx", {"word/document.xml": "x", "ä": "y"})
    data = bytearray(path.read_bytes())
    data[30:34] = b"\xd3\xff\xff\xff"
    data[7] |= 8  # the name is said to be UTF-8
    path.write_bytes(data)
    with pytest.raises(UnreadableDocument, match="damaged"):
        parse("docx", path)


def test_charts_are_named_and_diagrams_read(tmp_path):
    files = {
        "word/document.xml": f"<w:document {W}><w:body>{p('Text')}</w:body></w:document>",
        "word/charts/chart1.xml": "<c/>",
        "word/diagrams/data1.xml": '<d xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/'
        'main"><a:p><a:r><a:t>Step</a:t></a:r></a:p></d>',
    }
    parts = parse("docx", zipped(tmp_path, "a.docx", files))
    assert texts(parts) == ["Text", "Step"]
    assert "1 charts" in problems(parts)[0].what


def test_moby_dick_is_the_same_in_word():
    parts = parse("docx", shared("good/moby-dick-part.docx"))
    mine = words(whole(parts))
    twin = words(whole(parse("text", shared("good/moby-dick.txt"))))
    assert share_in_order(mine, twin) >= 0.99
    assert share_in_order(twin[: len(mine)], mine) >= 0.99
    assert "Chapter 2. The Carpet-Bag." in texts(parts, "heading")


def test_the_policy_chapter_is_read_whole():
    parts = parse("docx", shared("good/policy-controlfields.docx"))
    book = words(whole(parse("epub", shared("good/debian-policy.epub"))))
    assert share_in_order(words(whole(parts)), book) >= 0.95
    assert "5.1. Syntax of control files" in texts(parts, "heading")


def test_a_real_word_document_keeps_its_numbers():
    parts = parse("docx", shared("good/epubcheck-preview.docx"))
    assert "1. Overview/Summary" in texts(parts, "heading")
    assert len(whole(parts)) > 12_500


def test_notes_of_a_real_document():
    parts = parse("docx", shared("nasty/docx-notes.docx"))
    assert texts(parts) == [
        "A footnote",
        "Test footnote.[1] Test endnote.[2]",
        "[1] My note.",
        "[2] This is an endnote at the end of the document.",
    ]


def test_a_table_without_text_is_no_failure():
    assert whole(parse("docx", shared("nasty/docx-nested-tables.docx"))) == ""


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bomb-docx-700MB.docx", DocumentTooLarge),
        ("docx-billion-laughs.docx", UnreadableDocument),
        ("docx-xxe.docx", UnreadableDocument),
        ("wrong-ext-pdf-as-docx.docx", UnreadableDocument),
    ],
)
def test_hostile_files_are_refused(name, error):
    with pytest.raises(error):
        parse("docx", shared(f"nasty/{name}"))
