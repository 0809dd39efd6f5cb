"""PDF: pages and numbers, reading order, what belongs to the text and what does not."""

import pytest
from parsed import blocks, outline, pages, parse, problems, shared, texts, whole
from pdf_made import lines, made_pdf

from memory.blocks import Block, Info, PageStart
from memory.canonical import build

FULL = "The whale swam past the old wooden ship all night and the crew slept on"


def document(parts):
    return build(parts, id="0", name="made.pdf", size_bytes=1)


def test_every_page_comes_once_with_its_printed_number(tmp_path):
    path = made_pdf(
        tmp_path, [lines("Preface"), [], lines("Chapter")], labels="0 << /S /r >> 2 << /S /D >>"
    )
    parts = parse("pdf", path)
    assert parts[0] == Info("application/pdf", paged=True, num_pages=3)
    assert pages(parts) == [PageStart("i"), PageStart("ii", "blank"), PageStart("1")]


def test_headers_and_page_numbers_go_and_the_number_is_kept_as_label(tmp_path):
    numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    made = [
        [
            (50, 30, "A Book of Whales"),
            *lines(f"Text of page {word} begins here and", "goes on for a second line."),
            (200, 580, str(n + 11)),
        ]
        for n, word in enumerate(numbers)
    ]
    parts = parse("pdf", made_pdf(tmp_path, made))
    assert texts(parts) == [
        f"Text of page {word} begins here and goes on for a second line." for word in numbers
    ]
    assert [page.label for page in pages(parts)] == [str(n + 11) for n in range(8)]


def test_chapter_headers_go_though_each_stands_on_one_page_only(tmp_path):
    titles = ["Whales", "Ships", "Storms", "Islands", "Harbours", "Sails", "Ropes", "Masts"]
    made = [
        [(50, 30, f"{title}   {n + 5}"), *lines(f"{title} are told of here.", y=80)]
        for n, title in enumerate(titles)
    ]
    parts = parse("pdf", made_pdf(tmp_path, made))
    assert texts(parts) == [f"{title} are told of here." for title in titles]


def test_pages_of_one_line_keep_it(tmp_path):
    made = [[(50, 50, f"Record {n}")] for n in range(12)]
    assert texts(parse("pdf", made_pdf(tmp_path, made))) == [f"Record {n}" for n in range(12)]


def test_a_broken_word_is_joined_and_its_own_hyphen_kept(tmp_path):
    text = lines(
        "A well-known captain saw that the whale was swim-",
        "ming in the north, as is well-",
        "known, together with T-",
        "Rex and others who were there then.",
    )
    (found,) = texts(parse("pdf", made_pdf(tmp_path, [text])))
    assert "swimming in the north, as is well-known, together with T-Rex" in " ".join(found.split())


def test_a_paragraph_goes_on_overleaf(tmp_path):
    made = [lines(FULL, FULL, "so they did not see the white whale that came up in the morn-")]
    made += [lines("ing and sank the ship with all that was on board of it that day.")]
    parts = parse("pdf", made_pdf(tmp_path, made))
    found = blocks(parts)
    assert [block.joins for block in found] == [None, ""]
    assert "in the morning and sank" in document(parts).text
    assert [len(page.span) > 0 for page in document(parts).pages] == [True, True]


def test_a_finished_paragraph_does_not_go_on(tmp_path):
    made = [lines(FULL, "and that was the end of it."), lines("Morning came over the calm sea.")]
    assert [block.joins for block in blocks(parse("pdf", made_pdf(tmp_path, made)))] == [None, None]


def test_headings_items_listings_and_notes_are_told(tmp_path):
    page = [
        (50, 60, "2.1 Of Ships", 16, "F2"),
        *lines(FULL, FULL, "until noon.", y=90),
        *lines("• a rope", "• a sail", y=140),
        (60, 180, "for ship in fleet:", 10, "F3"),
        (84, 192, "sail(ship)", 10, "F3"),
        *lines(FULL, FULL, y=220),
        (50, 540, "1 A whale is a fish here.", 7),
        (50, 550, "2 So is the ship.", 7),
    ]
    parts = parse("pdf", made_pdf(tmp_path, [page]))
    assert blocks(parts, "heading") == [Block("2.1 Of Ships", "heading", 2)]
    assert texts(parts, "item") == ["• a rope", "• a sail"]
    assert texts(parts, "code") == ["for ship in fleet:\n    sail(ship)"]
    assert texts(parts, "note") == ["[1] A whale is a fish here.", "[2] So is the ship."]


def test_rows_of_a_table_stay_rows_and_wrapped_cells_whole(tmp_path):
    rows = [
        ("Ship", "Year", "Master"),
        ("Pequod", "1851", "Ahab, who lost"),
        ("Essex", "1820", "P"),
    ]
    page = []
    for n, row in enumerate(rows):
        y = 100 + 30 * n
        page += [(x, y, cell) for x, cell in zip((50, 150, 250), row, strict=True)]
    page.append((250, 142, "a leg"))
    (table,) = texts(parse("pdf", made_pdf(tmp_path, [page])), "table")
    assert table == "Ship | Year | Master\nPequod | 1851 | Ahab, who lost a leg\nEssex | 1820 | P"


def test_two_columns_are_read_one_after_the_other(tmp_path):
    left = [f"left column line {n} of running text" for n in range(12)]
    right = [f"right column line {n} of more text" for n in range(12)]
    page = [(50, 40, "A Title Across Both Columns of the Page", 14)]
    for n in range(12):  # as they come on the page, line by line
        page += [(50, 80 + 12 * n, left[n]), (230, 80 + 12 * n, right[n])]
    found = " ".join(whole(parse("pdf", made_pdf(tmp_path, [page]))).split())
    assert " ".join(left) + " " + " ".join(right) in found


def test_the_outline_comes_with_its_pages(tmp_path):
    path = made_pdf(tmp_path, [lines("One"), lines("Two")], outline=[("First", 0), ("Second", 1)])
    assert [(e.title, e.level, e.page) for e in outline(parse("pdf", path))] == [
        ("First", 1, 0),
        ("Second", 1, 1),
    ]


def test_real_columns_end_and_begin_where_the_sentence_does():
    text = " ".join(whole(parse("pdf", shared("good/paper-nar-two-column.pdf"))).split())
    # From one column to the next, from one page to the next, and over a figure.
    for passage in (
        "Levels of POLR1A were affected by BMH-21",
        "Actinomycin D induces phosphorylation of Ser139-H2AX",
        "using Lipofectamine™ RNAiMAX during 4h",
    ):
        assert passage in text
    assert "Nucleic Acids Research, 2024, Vol. 52" not in text
    assert "Downloaded from" not in text


def test_a_table_over_columns_and_pages_keeps_its_rows():
    parts = parse("pdf", shared("nasty/two-column-table-across-pages.pdf"))
    rows = [row for table in texts(parts, "table") for row in table.split("\n")]
    ships = [row.split(" | ")[0] for row in rows if row.startswith("Vessel")]
    assert ships == [f"Vessel {n}" for n in range(260)]
    assert all(row.count(" | ") == 2 for row in rows)
    assert "RUNNING HEADER" not in whole(parts)


def test_persian_stands_in_logical_order_and_columns_of_japanese_run_down():
    persian = whole(parse("pdf", shared("good/lshort-persian.pdf")))
    assert "دست آخر این که پاراگراف" in persian
    japanese = whole(parse("pdf", shared("nasty/vertical-kanbun-ja.pdf")))
    down = "".join(japanese.split())
    assert "江楓漁火對ス二愁眠ニ一" in down.replace("|", "")


def test_an_encrypted_file_opens_with_its_password_only():
    from memory.errors import PasswordNeeded
    from memory.parsers.pdf import PdfParser

    for name in ("enc-user-password-r6.pdf", "enc-user-password-r4aes.pdf"):
        path = shared(f"nasty/{name}")
        for password in (None, "wrong"):
            with pytest.raises(PasswordNeeded, match=rf"{name}.*--password"):
                list(PdfParser().parse(path, password=password))
        assert whole(list(PdfParser().parse(path, password="asdfzxcv")))


def test_a_file_whose_owner_forbids_copying_is_read():
    assert len(whole(parse("pdf", shared("nasty/enc-no-extract-permission.pdf")))) > 200_000


def test_only_the_main_text_of_a_file_with_attachments_is_read():
    parts = parse("pdf", shared("nasty/attachment.pdf"))
    assert len(pages(parts)) == 1
    assert not problems(parts)


def test_a_form_for_other_programs_is_explained():
    parts = parse("pdf", shared("nasty/form-xfa-livecycle.pdf"))
    assert "XFA" in problems(parts)[0].what
    assert "Adobe" in problems(parts)[0].remedy
