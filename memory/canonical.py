"""Parts of a file to a document: one canonical text, and pages and sections as spans in it."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from memory.blocks import Block, Info, Outline, PageStart, Part
from memory.characters import clean as visible
from memory.document import Document, Page, PageSource, Problem, Span
from memory.errors import EmptyDocument
from memory.sections import sections

_FORM_FEEDS = re.compile(r"[\x0b\x0c]")
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_LETTERS = re.compile(r"[^\W_]+")
# What programs write as a title where the person gave none.
_NO_TITLE = re.compile(
    r"untitled.{0,20}|document\d*|\(?anonymous\)?|microsoft word.*"
    r"|.*\.(?:docx?|odt|dvi|tex|indd|qxd|rtf)",
    re.IGNORECASE,
)

_TITLE_CHARS = 60


class Builder:
    """Takes a parser's parts one by one; ``document`` makes the whole of them."""

    def __init__(self) -> None:
        self._info = Info(media_type="application/octet-stream")
        self._pieces: list[str] = []
        self._length = 0
        self._pages: list[tuple[PageStart, int]] = []
        self._headings: list[tuple[int, Outline]] = []
        self._outline: list[Outline] = []
        self._block_starts: list[list[int]] = []
        self._problems: list[Problem] = []
        self._last_kind = ""

    @property
    def pages_done(self) -> int:
        """Pages begun."""
        return len(self._pages)

    @property
    def num_pages(self) -> int:
        """Pages in all, as the file says; 0 where it does not."""
        return self._info.num_pages

    def add(self, part: Part) -> None:
        """Takes the next part."""
        match part:
            case Info():
                self._info = part
            case PageStart():
                self._pages.append((part, self._length))
                self._block_starts.append([])
            case Outline():
                self._outline.append(part)
            case Problem():
                self._problems.append(Problem(clean(part.what), clean(part.remedy), part.page))
            case Block():
                self._add_block(part)

    def _add_block(self, block: Block) -> None:
        if not self._pages:
            self.add(PageStart())
        text = clean(block.text)
        if not text:
            return
        if self._length:
            self._append(self._separator(block, text))
        if block.kind == "heading":
            heading = Outline(text, max(block.level, 1), len(self._pages) - 1)
            self._headings.append((self._length, heading))
        self._block_starts[-1].append(self._length)
        self._append(text)
        self._last_kind = block.kind

    def _separator(self, block: Block, text: str) -> str:
        # A note at a page's foot may come between the halves of a paragraph; they stay apart then.
        if block.joins is not None and (self._last_kind != "note" or block.kind == "note"):
            seam = self._pieces[-1][-1] + text[0]
            return block.joins if unicodedata.is_normalized("NFC", seam) else " "
        return "\n" if block.kind == self._last_kind == "item" else "\n\n"

    def _append(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    @property
    def has_text(self) -> bool:
        """Whether a letter or digit has come yet."""
        return any(_LETTERS.search(piece) for piece in self._pieces)

    def lost(self, what: str, remedy: str) -> None:
        """Says that the parser ended before its time; the pages that never came are unread."""
        if self._pages and not self._block_starts[-1]:  # its text was still to come
            page, start = self._pages[-1]
            self._pages[-1] = (replace(page, source="unread"), start)
            first = len(self._pages) - 1
        else:
            first = len(self._pages)
        while len(self._pages) < self._info.num_pages:
            self.add(PageStart(source="unread"))
        if first == len(self._pages):  # all have begun, so it is the last that is not whole
            page, start = self._pages[-1]
            self._pages[-1] = (replace(page, source="unread"), start)
            first -= 1
        self._problems.append(Problem(what, remedy, first))

    def document(self, *, id: str, name: str, size_bytes: int) -> Document:
        """The document.

        Raises:
            EmptyDocument: there is not one letter or digit in it.
        """
        text = "".join(self._pieces)
        if not _LETTERS.search(text):
            raise EmptyDocument(self._empty(name))
        pages = self._page_spans(text)
        language = self._info.language.lower()
        return Document(
            id=id,
            name=name,
            title=self._title(name),
            media_type=clean(self._info.media_type),
            text=text,
            pages=pages,
            sections=sections(
                text,
                pages=pages,
                block_starts=self._block_starts,
                outline=self._outline,
                headings=self._headings,
            ),
            problems=tuple(self._problems),
            paged=self._info.paged,
            size_bytes=size_bytes,
            language=language if re.fullmatch("[a-z]{2}", language) else "",
        )

    def _empty(self, name: str) -> str:
        if not self._problems:
            return f"{name!r} holds no text"
        first = self._problems[0]
        more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
        return f"{name!r} holds no text that can be read: {first.what}{more}; {first.remedy}"

    def _title(self, name: str) -> str:
        title = " ".join(clean(self._info.title).split())
        highest = [h.title for _, h in self._headings if h.level == 1]
        if _NO_TITLE.fullmatch(title) or not _LETTERS.search(title):
            title = ""
        if not title and len(highest) == 1:  # the first of several chapters names no book
            title = " ".join(highest[0].split())
        return title or self._first_line() or PurePath(name).stem or name

    def _first_line(self) -> str:
        """The text's first line where it stands alone like a title, before any heading."""
        first = self._pieces[0] if self._pieces else ""
        if self._headings and self._headings[0][0] == 0:
            return ""
        is_title = len(first) <= _TITLE_CHARS and "\n" not in first and first[-1:].isalnum()
        return first if is_title and self._headings else ""

    def _page_spans(self, text: str) -> tuple[Page, ...]:
        pages: list[Page] = []
        for index, (page, start) in enumerate(self._pages):
            last = index + 1 == len(self._pages)
            end = len(text) if last else self._pages[index + 1][1]
            piece = text[start:end]
            start += len(piece) - len(piece.lstrip()) if piece.strip() else 0
            span = Span(start, start + len(piece.strip()))
            source: PageSource = page.source
            if source in ("text", "ocr") and not len(span):
                source = "blank"
            pages.append(Page(index, clean(page.label), span, source))
        return tuple(pages)


def build(parts: Iterable[Part], *, id: str, name: str, size_bytes: int) -> Document:
    """The document that all parts of a file make; see ``Builder``."""
    builder = Builder()
    for part in parts:
        builder.add(part)
    return builder.document(id=id, name=name, size_bytes=size_bytes)


def clean(text: str) -> str:
    """NFC, one line feed per line end, no blank lines, nothing invisible, no lone surrogates."""
    text = _FORM_FEEDS.sub("\n", visible(text))
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return _BLANK_LINES.sub("\n", text).strip()
