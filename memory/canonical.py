"""Parts of a file to a document: one canonical text, and pages and sections as spans in it."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from memory.blocks import Block, Info, Outline, PageStart, Part
from memory.document import Document, Page, PageSource, Problem, Section, Span
from memory.errors import EmptyDocument

_CONTROLS = dict.fromkeys({*range(32), *range(127, 160)} - {9, 10})  # tab and line feed stay
_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029|\x85|\x0b|\x0c")
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_LETTERS = re.compile(r"[^\W_]+")


class Builder:
    """Takes a parser's parts one by one; ``document`` makes the whole of them."""

    def __init__(self) -> None:
        self._info = Info(media_type="application/octet-stream")
        self._pieces: list[str] = []
        self._length = 0
        self._pages: list[tuple[PageStart, int]] = []
        self._headings: list[Outline] = []
        self._heading_starts: list[int] = []
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
                self._problems.append(part)
            case Block():
                self._add_block(part)

    def _add_block(self, block: Block) -> None:
        if not self._pages:
            self.add(PageStart())
        text = clean(block.text)
        if not text:
            return
        if self._length:
            separator: str = "\n\n"
            if block.joins is not None:
                separator = block.joins
            elif block.kind == "item" and self._last_kind == "item":
                separator = "\n"
            self._append(separator)
        if block.kind == "heading":
            self._headings.append(Outline(text, max(block.level, 1), len(self._pages) - 1))
            self._heading_starts.append(self._length)
        self._block_starts[-1].append(self._length)
        self._append(text)
        self._last_kind = block.kind

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
        # Where a block ends in a base and the next begins with a mark, NFC joins them; blocks are
        # parted by line ends or spaces, so their places stay.
        if not _LETTERS.search(text):
            raise EmptyDocument(self._empty(name))
        pages = self._page_spans(text)
        return Document(
            id=id,
            name=name,
            title=self._title(name),
            media_type=self._info.media_type,
            text=text,
            pages=pages,
            sections=_sections(self._entries(text, pages), len(text)),
            problems=tuple(self._problems),
            paged=self._info.paged,
            size_bytes=size_bytes,
            language=self._info.language,
        )

    def _empty(self, name: str) -> str:
        if not self._problems:
            return f"{name} holds no text"
        first = self._problems[0]
        more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
        return f"{name} holds no text that can be read: {first.what}{more}; {first.remedy}"

    def _title(self, name: str) -> str:
        title = clean(self._info.title).replace("\n", " ")
        highest = [h.title for h in self._headings if h.level == 1]
        if not title and len(highest) == 1:  # the first of several chapters names no book
            title = " ".join(highest[0].split())
        return title or PurePath(name).stem or name

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

    def _entries(self, text: str, pages: tuple[Page, ...]) -> list[tuple[int, Outline]]:
        """Where each section begins: by the file's own contents, else by its headings."""
        if not self._outline:
            return list(zip(self._heading_starts, self._headings, strict=True))
        entries: list[tuple[int, Outline]] = []
        for entry in self._outline:
            if 0 <= entry.page < len(pages) and clean(entry.title):
                entries.append((self._find(entry, text, pages[entry.page].span), entry))
        return sorted(entries, key=lambda item: item[0])

    def _find(self, entry: Outline, text: str, page: Span) -> int:
        starts = self._block_starts[entry.page]
        if 0 < entry.block < len(starts):
            return starts[entry.block]
        wanted = _letters(entry.title)
        for start in starts:
            line = text[start : min(page.end, start + 4 * len(entry.title) + 40)]
            if wanted and wanted in _letters(line)[: 2 * len(wanted) + 12]:
                return start
        return page.start


def build(parts: Iterable[Part], *, id: str, name: str, size_bytes: int) -> Document:
    """The document that all parts of a file make; see ``Builder``."""
    builder = Builder()
    for part in parts:
        builder.add(part)
    return builder.document(id=id, name=name, size_bytes=size_bytes)


def clean(text: str) -> str:
    """NFC, one line feed per line end, no blank lines, no control characters or lone surrogates."""
    text = _LINE_ENDS.sub("\n", text)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
        text = unicodedata.normalize("NFC", text)
    return _BLANK_LINES.sub("\n", text.translate(_CONTROLS)).strip()


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _sections(entries: list[tuple[int, Outline]], end: int) -> tuple[Section, ...]:
    """Each runs to where the next of the same or a higher level begins."""
    sections: list[Section] = []
    open_ones: list[int] = []  # positions of the sections that the next one may lie in
    stops = [end] * len(entries)
    for i, (start, entry) in enumerate(entries):
        while open_ones and entries[open_ones[-1]][1].level >= entry.level:
            stops[open_ones.pop()] = start
        open_ones.append(i)
    for (start, entry), stop in zip(entries, stops, strict=True):
        title = " ".join(clean(entry.title).split())
        sections.append(Section(title, max(entry.level, 1), Span(start, stop)))
    return tuple(sections)
