import pytest
from parsed import blocks, pages, parse, shared, texts, whole, written

from memory.blocks import Info
from memory.errors import DocumentNotFound, EmptyDocument


def html(tmp_path, body, head=""):
    page = f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>"
    return parse("html", written(tmp_path, "page.html", page))


def test_title_language_and_one_page(tmp_path):
    parts = html(tmp_path, "<p>Text.", head="<title> The\n Lamp </title>")
    assert parts[0] == Info("text/html", "The Lamp", "en")
    assert len(pages(parts)) == 1
    assert whole(parts) == "Text."


def test_what_a_reader_does_not_see_is_left_out(tmp_path):
    parts = html(
        tmp_path,
        "<p>Seen.</p><script>x()</script><style>p{}</style><p hidden>a</p><template>b</template>"
        "<p style='color:red; display: none'>c</p><noscript>d</noscript>"
        "<nav><a href='/'>Home</a></nav><i aria-hidden='true'>★</i><button>Buy</button>",
    )
    assert texts(parts) == ["Seen."]


def test_text_marked_for_screen_readers_only_in_part_is_kept(tmp_path):
    parts = html(tmp_path, "<main aria-hidden='true'><p>Behind the dialogue.</p></main>")
    assert texts(parts) == ["Behind the dialogue."]


def test_a_page_of_links_only_is_read_for_its_links(tmp_path):
    assert texts(html(tmp_path, "<nav><ul><li>Home</li></ul></nav>")) == ["- Home"]


def test_headings_paragraphs_and_line_breaks(tmp_path):
    parts = html(tmp_path, "<h2>A<br>b</h2>one\n two<br>three<br><br>four<pre>x  = 1\n  y</pre>")
    assert [(b.kind, b.level, b.text) for b in blocks(parts)] == [
        ("heading", 2, "A b"),
        ("paragraph", 0, "one two\nthree"),
        ("paragraph", 0, "four"),
        ("code", 0, "x  = 1\n  y"),
    ]


def test_lists_count_as_they_are_shown(tmp_path):
    parts = html(
        tmp_path,
        "<ol start=3><li>c<li>d<ul><li>inner</ul><li value=9>i<li>j</ol>"
        "<ol type=i><li>x<li>y</ol><dl><dt>term<dd>meaning</dl>",
    )
    assert texts(parts, "item") == [
        *("3. c", "4. d", "- inner", "9. i", "10. j", "i. x", "ii. y", "term", "meaning")
    ]


def test_a_table_is_one_block_with_a_row_a_line(tmp_path):
    parts = html(
        tmp_path,
        "<table><caption>Prices</caption><tr><th>Thing<th>Price<tr><td>Kettle<td>12"
        "<tr><td><table><tr><td>in<td>ner<tr><td>side<td>too</table><td></table>",
    )
    assert texts(parts, "caption") == ["Prices"]
    assert texts(parts, "table") == ["Thing | Price\nKettle | 12\nin | ner; side | too |"]


def test_a_table_that_only_places_text_is_read_as_text(tmp_path):
    parts = html(tmp_path, "<table><tr><td><h1>Title</h1><p>One.</p></td><td>Two.</td></table>")
    assert [(b.kind, b.text) for b in blocks(parts)] == [
        ("heading", "Title"),
        ("paragraph", "One."),
        ("paragraph", "Two."),
    ]


def test_notes_carry_the_mark_of_their_reference_and_back_links_go(tmp_path):
    parts = html(
        tmp_path,
        "<p>Seen<sup id=r1><a href='#n1'>[7]</a></sup> again.</p>"
        "<ol><li id=n1><a href='#r1'>^</a> A note.<p>More of it.</p></li></ol>",
    )
    assert texts(parts, "paragraph") == ["Seen[7] again."]
    assert texts(parts, "note") == ["[7] A note.", "More of it."]


def test_formulas_powers_ruby_and_quotations_can_be_read(tmp_path):
    parts = html(
        tmp_path,
        "<p>10<sup>3</sup> the 1<sup>st</sup> H<sub>2</sub>O <q>so</q> "
        "<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>"
        "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><msup><mi>b</mi><mn>2</mn></msup>"
        "</mfrac></math></p>",
    )
    assert texts(parts) == ["10^3 the 1st H2O “so” 漢字(かんじ) (a + 1)/(b^2)"]


def test_pictures_speak_where_their_words_say_something(tmp_path):
    parts = html(tmp_path, "<p><img alt='A whale'></p><img alt='image'><img alt='x.png'><p>T<img>")
    assert [(b.kind, b.text) for b in blocks(parts)] == [("caption", "A whale"), ("paragraph", "T")]


def test_printed_pages_part_a_paragraph_that_goes_on(tmp_path):
    parts = html(tmp_path, "<p>one <span role='doc-pagebreak' aria-label='12'></span>two</p>")
    assert [page.label for page in pages(parts)] == ["", "12"]
    assert [(b.text, b.joins) for b in blocks(parts)] == [("one", None), ("two", " ")]
    assert parts[0].paged


def test_nesting_a_hundred_thousand_deep_is_no_danger(tmp_path):
    parts = html(tmp_path, "<div>" * 100_000 + "deep" + "</div>" * 100_000 + "<p>After.")
    assert texts(parts) == ["deep", "After."]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("<table><tr><td>a<td>", "</table>"),
        ("<math><mrow>" * 2, "</mrow></math>" * 2),
        ("<ul><li>", ""),
        ("<span>", "</span>"),
        ("<ruby>x<rt>", "</rt></ruby>"),
    ],
)
def test_no_element_can_be_nested_too_deep(tmp_path, start, end):
    parts = html(tmp_path, start * 900 + "deep" + end * 900 + "<p>After.")
    assert "deep" in whole(parts)
    assert "After." in whole(parts)


def test_invisible_characters_do_not_hide_words(tmp_path):
    parts = html(tmp_path, "<p>k\u200be\u00adt\u2060tle &#xD800;\u202eabc\u202c a\u00a0b</p>")
    assert texts(parts)[0].startswith("kettle ")
    assert texts(parts)[0].endswith("abc a b")


def test_zero_bytes_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(EmptyDocument, match="no bytes"):
        parse("html", shared("nasty/empty-zero-bytes.html"))
    with pytest.raises(DocumentNotFound, match="no file"):
        parse("html", tmp_path / "none.html")


def test_the_saved_web_page_is_read_whole():
    parts = parse("html", shared("good/flag-day-wikipedia.html"))
    assert parts[0].title == "National Flag of Canada Day - Wikipedia"
    assert "submissions.[2]" in whole(parts)
    assert [note[:4] for note in texts(parts, "note")] == [f"[{n}] " for n in range(1, 10)]
    assert "RLCONF" not in whole(parts)
    assert [b.text for b in blocks(parts, "heading")][:3] == [
        *("National Flag of Canada Day", "History", "Background")
    ]


def test_the_japanese_manual_is_read_whole():
    parts = parse("html", shared("good/kicad-eeschema-ja.html"))
    assert len(whole(parts)) > 170_000
    assert len(blocks(parts, "heading")) > 180
    assert len(blocks(parts, "table")) > 80
    assert "シンボル・ライブラリーに関する一般情報" in whole(parts)


def test_hidden_instructions_are_not_read():
    assert whole(parse("html", shared("nasty/prompt-injection.html"))) == (
        "Kettle\n\nThe warranty lasts two years."
    )


def test_a_charset_that_lies_is_not_believed():
    text = whole(parse("html", shared("nasty/enc-html-lying-meta.html")))
    assert "предназначено для обычных пользователей" in text


def test_html_named_pdf_is_read():
    assert "Jour du drapeau" in whole(parse("html", shared("nasty/wrong-ext-html-as-pdf.pdf")))
