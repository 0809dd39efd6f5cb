"""Damaged, odd and huge PDF files: what is there is read, what is lost is said, nothing hangs."""

import subprocess
import sys
from pathlib import Path

import pytest
from parsed import SHARED, pages, parse, problems, shared, whole
from pdf_made import lines, made_pdf

from memory.errors import (
    DocumentError,
    DocumentNotFound,
    DocumentTooLarge,
    EmptyDocument,
    UnreadableDocument,
)
from memory.parsers.pdf import PdfParser

NASTY = [
    path
    for path in sorted((SHARED / "docs" / "nasty").glob("broken-*.pdf"))
    if "startxref" not in path.name  # has its own test
]


def test_a_file_that_ends_too_soon_is_read_as_far_as_it_goes():
    parts = parse("pdf", shared("nasty/broken-truncated-85pct-recoverable.pdf"))
    assert len(pages(parts)) == 113
    assert "its end is missing" in problems(parts)[0].what
    assert "An Introduction to R" in whole(parts)


def test_pages_lost_in_a_damaged_file_are_named():
    parts = parse("pdf", shared("nasty/broken-bit-rot.pdf"))
    unread = [n for n, page in enumerate(pages(parts)) if page.source == "unread"]
    assert unread
    assert [p.page for p in problems(parts) if p.page is not None] == unread


@pytest.mark.slow
def test_a_wrong_index_is_said_and_all_pages_are_read():
    parts = parse("pdf", shared("nasty/broken-startxref.pdf"))
    assert len(pages(parts)) == 311
    assert "index of objects" in problems(parts)[0].what


def test_garbage_before_the_header_is_no_damage():
    parts = parse("pdf", shared("nasty/broken-leading-garbage.pdf"))
    assert len(pages(parts)) == 50
    assert not problems(parts)


@pytest.mark.parametrize("path", NASTY, ids=lambda path: path.stem)
def test_every_page_of_a_broken_file_comes_once(path):
    parts = list(PdfParser(ocr=False).parse(path))
    assert len(pages(parts)) == parts[0].num_pages
    assert all(p.what and p.remedy for p in problems(parts))


def test_a_file_cut_anywhere_is_read_or_refused(tmp_path):
    whole_file = made_pdf(tmp_path, [lines("One whale"), lines("Two whales")]).read_bytes()
    read = 0
    for length in range(1, len(whole_file), 23):
        cut = tmp_path / "cut.pdf"
        cut.write_bytes(whole_file[:length])
        try:
            parts = parse("pdf", cut)
        except UnreadableDocument:
            continue
        read += "whale" in whole(parts)
        assert length > len(whole_file) - 8 or problems(parts)
    assert read > 5


def test_objects_in_compressed_streams_are_found_again(tmp_path):
    import zlib

    page = (
        b"<< /Type /Page /MediaBox [0 0 400 600] /Contents 5 0 R "
        b"/Resources << /Font << /F1 6 0 R >> >> >>"
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    table = b"4 0 6 %d " % (len(page) + 1)
    packed = zlib.compress(table + page + b" " + font)
    text = b"BT /F1 12 Tf 50 500 Td (A whale in a stream) Tj ET"
    path = tmp_path / "cut.pdf"
    path.write_bytes(
        b"%%PDF-1.5\n5 0 obj\n<< /Length %d >>\nstream\n%b\nendstream\nendobj\n"
        b"7 0 obj\n<< /Type /ObjStm /N 2 /First %d /Filter /FlateDecode /Length %d >>\n"
        b"stream\n%b\nendstream\nendobj\n" % (len(text), text, len(table), len(packed), packed)
    )
    assert "A whale in a stream" in whole(parse("pdf", path))


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", EmptyDocument), (b"%PDF-1.7\n", UnreadableDocument), (b"<html>", UnreadableDocument)],
)
def test_what_is_no_pdf_is_refused_by_name(tmp_path, content, error):
    path = tmp_path / "odd.pdf"
    path.write_bytes(content)
    with pytest.raises(error, match=r"odd\.pdf"):
        parse("pdf", path)


def test_a_missing_file_and_too_many_pages_are_errors(tmp_path):
    with pytest.raises(DocumentNotFound):
        parse("pdf", tmp_path / "none.pdf")
    path = made_pdf(tmp_path, [lines("One"), lines("Two")])
    with pytest.raises(DocumentTooLarge, match="2 pages and at most 1"):
        list(PdfParser(max_pages=1).parse(path))
    assert issubclass(DocumentTooLarge, DocumentError)


MEASURED = """
import re, sys
from pathlib import Path
from memory.blocks import PageStart
from memory.parsers.pdf import PdfParser
parts = PdfParser(ocr=False).parse(Path(sys.argv[1]))
print(sum(isinstance(part, PageStart) for part in parts))
# Not getrusage: that counts what the parent had when it forked.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is in /proc")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_pages"),
    [("nasty/huge-20000-pages.pdf", 20_000), ("good/octave-manual-1100p.pdf", 1158)],
)
def test_memory_stays_flat_however_many_pages(name, num_pages):
    path = shared(name)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    counted, peak_mib = map(int, done.stdout.split())
    assert counted == num_pages
    assert peak_mib < 200
