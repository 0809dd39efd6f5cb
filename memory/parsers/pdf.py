"""PDF: text in reading order, the pages' printed numbers, scanned pages read by OCR."""

__all__ = ["PdfParser"]

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memory.blocks import Block, Info, PageStart, Part, Reading
from memory.document import PageSource, Problem
from memory.errors import DocumentTooLarge
from memory.ocr import Ocr
from memory.pdf_columns import Gutters, in_order
from memory.pdf_file import DAMAGE, language, open_pdf, outline, title
from memory.pdf_furniture import Furniture
from memory.pdf_paragraphs import Draft, Paragraphs, goes_on
from memory.pdf_scan import LOST, LOST_REMEDY, PageText, read_page
from memory.pdf_words import PageWords


@dataclass(frozen=True, slots=True)
class PdfParser:
    """Reads PDF files, damaged ones as far as they are there.

    A file whose owner forbids copying is read all the same: the person may read it, and nothing
    of it leaves the library but short quotes.

    Attributes:
        ocr: Whether pages that are pictures are read (some seconds each).
        max_pages: A file with more is refused.
        max_threads: For OCR; never more than there are cores.
    """

    ocr: bool = True
    max_pages: int = 100_000
    max_threads: int = 4

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """Pages with their blocks; the file's own contents follow as ``Outline``.

        Raises:
            PasswordNeeded: it is encrypted, and no password or a wrong one was given.
            DocumentTooLarge: it has more than ``max_pages`` pages.
            UnreadableDocument: it is no PDF file, or damaged past reading.
        """
        document, problems = open_pdf(path, password)
        try:
            num_pages = len(document)
            if num_pages > self.max_pages:
                raise DocumentTooLarge(
                    f"{path.name!r} has {num_pages:,} pages and at most {self.max_pages:,} are "
                    "read; split it into parts"
                )
            yield Info(
                "application/pdf",
                title(document),
                language(document),
                paged=True,
                num_pages=num_pages,
            )
            yield from problems
            is_damaged = any(problem.what in DAMAGE for problem in problems)
            ocr = Ocr(self.max_threads) if self.ocr else None
            yield from _Reading(document, ocr, is_damaged=is_damaged).parts()
            entries = outline(document, num_pages)
            if len(entries) > 1:  # a single one names the file
                yield from entries
        finally:
            document.close()


@dataclass(slots=True)
class _Page:
    """A page that waits for the next one: its last paragraph may go on there."""

    start: PageStart
    problem: Problem | None
    drafts: list[Draft]
    joins: Literal[" ", ""] | None = None


class _Reading:
    """One pass over the pages. A few are held at a time: headers are told by comparing them."""

    def __init__(self, document: Any, ocr: Ocr | None, *, is_damaged: bool) -> None:
        self.document = document
        self.is_damaged = is_damaged
        self.ocr = ocr
        self.paragraphs = Paragraphs()
        self.gutters = Gutters()
        self.held: dict[int, PageText] = {}

    def parts(self) -> Iterator[Part]:
        waiting: _Page | None = None
        for index, words in Furniture().stripped(self._read()):
            if words is None:
                yield Reading(index)
                continue
            page = self._page(index, words)
            if waiting:
                self._join(waiting, page)
                yield from _blocks(waiting)
            waiting = page
        if waiting:
            yield from _blocks(waiting)

    def _read(self) -> Iterator[tuple[int, PageWords | None]]:
        for index in range(len(self.document)):
            yield index, None
            text = read_page(self.document, index, self.ocr, is_damaged=self.is_damaged)
            self.held[index] = text
            self.paragraphs.learn([(run.text, run.size) for run in text.words.runs])
            yield index, text.words

    def _page(self, index: int, words: PageWords) -> _Page:
        text = self.held.pop(index)
        drafts = self.paragraphs.drafts(in_order(words.runs, self.gutters))
        source: PageSource = text.source
        problem = text.problem
        if source in ("text", "ocr") and not drafts:
            source = "blank"
            if self.is_damaged:
                source, problem = "unread", problem or Problem(LOST, LOST_REMEDY, index)
        start = PageStart(text.label or words.printed, source)
        return _Page(start, problem, drafts)

    def _join(self, page: _Page, following: _Page) -> None:
        """Puts a paragraph that the page's end broke together."""
        if not page.drafts or not following.drafts:
            return
        last, first = page.drafts[-1], following.drafts[0]
        if goes_on(last, first):
            last.text, glue = self.paragraphs.spellings.seam(last.text, first.text)
            following.joins = " " if glue else ""


def _blocks(page: _Page) -> Iterator[Part]:
    yield page.start
    if page.problem:
        yield page.problem
    for number, draft in enumerate(page.drafts):
        joins = page.joins if number == 0 else None
        yield Block(draft.text, draft.kind, draft.level, joins)
