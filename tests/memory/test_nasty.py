"""Every nasty file: read whole, or the person is told what was not read and what to do."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from parsed import SHARED, shared
from twins import share_in_order, words

from memory.document import Document
from memory.errors import (
    DocumentError,
    DocumentProtected,
    DocumentTooLarge,
    EmptyDocument,
    PasswordNeeded,
    UnreadableDocument,
    UnsupportedFormat,
)
from memory.parsing import Limits, read_document

MEMORY_BYTES = 1536 * 2**20
PASSWORD = "asdfzxcv"
FOLDER = SHARED / "docs" / "nasty"


@dataclass(frozen=True)
class Refused:
    """The file cannot be read, and the message says why.

    Attributes:
        error: The class of the error.
        says: What its message must hold, a regular expression.
    """

    error: type[DocumentError]
    says: str = ""


@dataclass(frozen=True)
class Read:
    """The file is read.

    Attributes:
        pages: How many there are.
        unread: How many of them cannot be read (None: some); each is named by a problem.
        blank: How many have nothing on them.
        holds: What the text must hold, in this order.
        lacks: What it must not hold.
        problem: What a problem must say, a regular expression; empty where there must be none.
        password: To give.
    """

    pages: int
    unread: int | None = 0
    blank: int = 0
    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    problem: str = ""
    password: str | None = None


NASTY: dict[str, Refused | Read] = {
    # encrypted
    "enc-user-password-r6.pdf": Read(1, holds=("pdf encryption test",), password=PASSWORD),
    "enc-user-password-r4aes.pdf": Read(1, holds=("pdf encryption test",), password=PASSWORD),
    "enc-bad-length.pdf": Refused(PasswordNeeded, "--password"),
    "enc-no-extract-permission.pdf": Read(113, holds=("An Introduction to R",)),
    # scanned
    "scan-multipage.pdf": Read(
        6, holds=("got a good going-over in the morning", "highwayman in the dark")
    ),
    "scan-huckfinn-page.pdf": Read(
        1, holds=("got a good going-over in the morning", "Miss Watson,")
    ),
    "scan-rotated-skewed.pdf": Read(
        1, holds=("The LinnSequencer", "Each of the 100 sequences", "18720 Oxnard Street")
    ),
    "scan-jbig2.pdf": Read(
        1, holds=("The LinnSequencer", "Each of the 100 sequences", "18720 Oxnard Street")
    ),
    "scan-typewriter-2400dpi.pdf": Read(1, holds=("4 ons linzen", "is de soep klaar.")),
    "scan-whole-paper.pdf": Read(7),
    "sandwich-ocr.pdf": Read(1, holds=("The LinnSequencer", "18720 Oxnard Street")),
    "font-no-unicode-truetype.pdf": Read(1),
    "font-no-unicode-type3.pdf": Read(1),
    "huge-page-size.pdf": Read(1, holds=("81 megapixels",)),
    # broken
    "broken-truncated-85pct-recoverable.pdf": Read(
        113, holds=("An Introduction to R",), problem="its end is missing.*get the file anew"
    ),
    "broken-startxref.pdf": Read(311, holds=("gnuplot",), problem="index of objects is damaged"),
    "broken-leading-garbage.pdf": Read(50, holds=("Filesystem Hierarchy Standard",)),
    "broken-bit-rot.pdf": Read(
        50, unread=None, holds=("dedicated to the memory",), problem="damaged.*get the file anew"
    ),
    "broken-qpdf-xref-errors.pdf": Read(1, holds=("Potato",)),
    "broken-qpdf-issue-202.pdf": Read(10, blank=1, holds=("Sample PDF Document", "footnotesize")),
    "broken-qpdf-damaged-stream.pdf": Read(1, holds=("Potato",)),
    "broken-cyclic-outline.pdf": Refused(DocumentError),
    "broken-page-tree-loop.pdf": Refused(DocumentError),
    "invalid-header-only.pdf": Refused(UnreadableDocument, "no PDF file that can be read"),
    "no-contents.pdf": Refused(EmptyDocument, "holds no text"),
    "form-xfa-livecycle.pdf": Refused(EmptyDocument, "form"),
    # empty
    "empty-zero-bytes.epub": Refused(EmptyDocument, "has no bytes"),
    "empty-zero-bytes.txt": Refused(EmptyDocument, "has no bytes"),
    "empty-zero-bytes.html": Refused(EmptyDocument, "has no bytes"),
    "empty-whitespace.txt": Refused(EmptyDocument, "holds no text"),
    "docx-nested-tables.docx": Refused(EmptyDocument, "holds no text"),  # all its cells are empty
    # huge, or larger than it seems
    "huge-20000-pages.pdf": Read(20000, holds=("Page 2 says 7919.", "Page 20000 says 1299.")),
    "huge-mahabharata-2000-files.epub": Read(2014, holds=("धृतराष्ट्र उवाच",)),
    "one-line-5MB.txt": Read(1, holds=("Call me Ishmael.",)),
    "bomb-docx-700MB.docx": Refused(DocumentTooLarge, "unpacks to .* split"),
    "bomb-epub-700MB.epub": Refused(DocumentTooLarge, "unpacks to .* split"),
    # hostile
    "docx-billion-laughs.docx": Refused(UnreadableDocument, "entities"),
    "docx-xxe.docx": Refused(UnreadableDocument, "entities"),
    "prompt-injection.html": Read(
        1, holds=("Kettle", "two years"), lacks=("gnore", "alert", "ten")
    ),
    "attachment.pdf": Read(1, holds=("The Crazy Ones", "are the ones who do.")),
    # books
    "epub-no-container.epub": Read(1, holds=("Text that can still be found.",)),
    "epub-drm.epub": Refused(DocumentProtected, "rights management"),
    "epub-images-only.epub": Refused(EmptyDocument, "picture.*print the book to PDF"),
    "epub-obfuscated-fonts.epub": Read(1, holds=("April is the cruellest month",)),
    # encodings
    "enc-mixed-utf8-cp1252.txt": Read(1, holds=("Ünïcödé – “quotes”, naïve café, £5",)),
    "enc-euc-jp.txt": Read(1, holds=("製作著作 © 2013-2021",), lacks=("\ufffd",)),
    "enc-gb18030.txt": Read(1, holds=("版权 © 2013-2021",), lacks=("\ufffd",)),
    "enc-koi8-r.txt": Read(1, holds=("Руководство для сопровождающих",), lacks=("\ufffd",)),
    "enc-html-lying-meta.html": Read(1, holds=("команды debmake",), lacks=("\ufffd", "Ð")),
    "rtf-cp1251.rtf": Read(1, holds=("абвгдеёжзийклмнопрстуфхцчшщъыьэюя",)),
    "nul-and-control.txt": Read(1, holds=("Call me Ishmael.",), lacks=("[31m",)),
    "bidi-zero-width.txt": Read(
        1, holds=("Zero width joined words here.",), lacks=("\u202e", "\u200b", "\ufeff")
    ),
    # right to left, vertical
    "rtl-arabic.epub": Read(3, unread=1, blank=1, holds=("ما هو السرطان؟",), problem="picture"),
    "rtl-arabluatex.pdf": Read(81, holds=("The arabluatex package", "License and disclamer")),
    "rtl-persian-book.pdf": Read(27, holds=("نویسنده", "فهرست مطالب", "درود بر شما")),
    "vertical-kanbun-ja.pdf": Read(6, holds=("目次", "はじめに", "孔明")),
    # other formats, and other names
    "legacy-word97.doc": Refused(UnsupportedFormat, r"Word 97-2003.*save it as DOCX"),
    "docx-notes.docx": Read(1, holds=("footnote.[1] Test endnote.[2]", "[1] My note.", "[2] ")),
    "rtf-complex-list.rtf": Read(1, holds=("1. One", "b. Four", "II. Ten", "8. Eight Continue")),
    "wrong-ext-pdf-as-docx.docx": Read(50, holds=("Filesystem Hierarchy Standard",)),
    "wrong-ext-html-as-pdf.pdf": Read(1, holds=("Flag of Canada Day",)),
    "ελληνικά – 文書 (final) #1 %20.txt": Read(
        1, holds=("password word in this file is marigold",)
    ),
    "two-column-table-across-pages.pdf": Read(
        12, holds=("Call me Ishmael. Some years ago", "Better sleep with a sober cannibal")
    ),
}
SLOW = {name for name in NASTY if name.startswith(("scan", "huge", "rtl-persian", "vertical"))}


def test_every_nasty_file_has_an_expectation():
    if not FOLDER.is_dir():
        pytest.skip("the shared documents are not here (set GISTREE_SHARED)")
    assert {path.name for path in FOLDER.iterdir()} == set(NASTY)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in NASTY]
)
def test_nasty(name):
    wanted = NASTY[name]
    path = shared(f"nasty/{name}")
    if isinstance(wanted, Refused):
        with pytest.raises(wanted.error) as caught:
            document_of(path, None)
        message = str(caught.value)
        assert name in message, "names the file"
        assert re.search(wanted.says, message), message
    else:
        check(document_of(path, wanted.password), wanted)


@cache
def document_of(path: Path, password: str | None) -> Document:
    """The document, read within the memory limit and a time that nobody calls a hang."""
    return read_document(path, password=password, limits=Limits(MEMORY_BYTES, total_s=900))


def check(document: Document, wanted: Read) -> None:
    unread = [page.index for page in document.pages if page.source == "unread"]
    assert len(document.pages) == wanted.pages
    assert sum(page.source == "blank" for page in document.pages) == wanted.blank
    assert unread if wanted.unread is None else len(unread) == wanted.unread, document.problems
    said = {problem.page for problem in document.problems}
    assert set(unread) <= said, "each unread page is named"
    told = "\n".join(f"{problem.what}; {problem.remedy}" for problem in document.problems)
    assert bool(told) == bool(wanted.problem), told
    assert re.search(wanted.problem, told, re.DOTALL), told
    assert not any(problem.remedy == "" for problem in document.problems)
    start = 0
    for piece in wanted.holds:
        start = document.text.find(piece, start) + len(piece)
        assert start >= len(piece), f"{piece!r} is not there in its order"
    for piece in wanted.lacks:
        assert piece not in document.text
    document.text.encode()  # no lone surrogates
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", document.text)


@pytest.mark.parametrize("name", ["enc-user-password-r6.pdf", "enc-user-password-r4aes.pdf"])
@pytest.mark.parametrize("password", [None, "", "wrong"])
def test_a_password_is_asked_for(name, password):
    with pytest.raises(PasswordNeeded, match=re.escape(repr(name))):
        read_document(shared(f"nasty/{name}"), password=password)


@pytest.mark.slow
def test_a_scanned_paper_says_what_its_twin_with_text_says():
    scanned = document_of(shared("nasty/scan-whole-paper.pdf"), None)
    twin = document_of(shared("good/paper-nature-comms.pdf"), None)
    assert [page.source for page in scanned.pages] == ["ocr"] * 7
    assert share_in_order(words(twin.text), words(scanned.text)) > 0.87  # figures' letters too
    assert share_in_order(said(twin), said(scanned)) > 0.98


def said(document: Document) -> list[str]:
    """Words of three letters or more; shorter ones are mostly labels within the figures."""
    return [word for word in words(document.text) if word.isalpha() and len(word) > 2]
