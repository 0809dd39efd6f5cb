"""A document as a person looks at it: pages as pictures or as text, with places marked."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.page_pictures import PagePictures, Picture
from app.source_text import Hit, Paragraph, find_in, paragraphs, part_at, parts
from memory.document import Document, Span
from memory.pdf_boxes import occurrence_of

THUMBNAIL_PIXELS = 120
_SOURCES_OPEN = 8


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page as a picture with its highlights.

    Attributes:
        picture: The page.
        highlights: Boxes as shares of the page's width and height: (left, top, right, bottom).
    """

    picture: Picture
    highlights: tuple[tuple[float, float, float, float], ...]


class Source:
    """One document, open for looking. What is not looked at is not drawn."""

    def __init__(self, document: Document, file: Path, pictures: PagePictures) -> None:
        self.document = document
        self._file = file
        self._pictures = pictures

    @property
    def has_pictures(self) -> bool:
        """Whether its pages can be shown as pictures."""
        return self.document.media_type == "application/pdf"

    @cached_property
    def parts(self) -> tuple[Span, ...]:
        """What one turns through: pages, or stretches of text."""
        return parts(self.document)

    def part_of(self, span: Span) -> int:
        """Position of the part where a place begins."""
        return part_at(self.parts, span.start)

    def label(self, part: int) -> str:
        """What a part is called: its printed page number where that differs, its section."""
        words = []
        if self.document.paged:
            printed = self.document.pages[part].label
            if printed not in ("", str(part + 1)):
                words.append(f"printed {printed}")
        words += self.section(part)
        return " › ".join(words)

    def section(self, part: int) -> tuple[str, ...]:
        """Titles of the sections around the first that begins in a part, else around its start."""
        span = self.parts[part]
        for section in self.document.sections:
            if span.start <= section.span.start < span.end:
                return self.document.section_path(section.span.start)
            if section.span.start >= span.end:
                break
        return self.document.section_path(span.start)

    def sheet(self, part: int, *, width_pixels: int, marks: Sequence[Span] = ()) -> Sheet:
        """A page as a picture, with places highlighted.

        Raises:
            DocumentError: the page cannot be drawn; ``paragraphs`` still has its text.
        """
        picture = self._pictures.picture(self._file, part, width_pixels=width_pixels)
        page, text = self.parts[part], self.document.text
        quotes = []
        for mark in marks:
            if mark.overlaps(page):
                quote = mark.of(text)
                before = text[page.start : mark.start] if mark.start > page.start else ""
                quotes.append((quote, occurrence_of(quote, before)))
        highlights = [
            (
                box.left / picture.width,
                box.top / picture.height,
                box.right / picture.width,
                box.bottom / picture.height,
            )
            for boxes in self._pictures.boxes(self._file, part, quotes)
            for box in boxes
        ]
        for near in (part + 1, part - 1):
            if 0 <= near < len(self.parts):
                self._pictures.draw_ahead(self._file, near, width_pixels=width_pixels)
        return Sheet(picture, tuple(highlights))

    def thumbnail(self, part: int) -> Picture:
        """A page, small.

        Raises:
            DocumentError: it cannot be drawn.
        """
        return self._pictures.picture(self._file, part, width_pixels=THUMBNAIL_PIXELS)

    def paragraphs(self, part: int, marks: Sequence[Span] = ()) -> tuple[Paragraph, ...]:
        """The text of a part, with places marked."""
        return paragraphs(self.document, self.parts[part], marks)

    def find(self, query: str) -> list[Hit]:
        """Where words stand, in document order."""
        return find_in(self.document, query)


class Sources:
    """The documents of a library, open for looking. Safe for many threads."""

    def __init__(self, document: Callable[[str], Document], file: Callable[[str], Path]) -> None:
        """Opens nothing yet.

        Args:
            document: Id to document.
            file: Id to the library's copy of its file.
        """
        self._document = document
        self._file = file
        self._pictures = PagePictures()
        self._open: OrderedDict[str, Source] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends what draws."""
        self._pictures.close()

    def open(self, document_id: str) -> Source:
        """A document to look at.

        Raises:
            DocumentNotFound: the library does not hold it.
        """
        document = self._document(document_id)
        with self._lock:
            known = self._open.get(document_id)
            if known is None or known.document is not document:
                known = Source(document, self._file(document_id), self._pictures)
                self._open[document_id] = known
            self._open.move_to_end(document_id)
            while len(self._open) > _SOURCES_OPEN:
                self._open.popitem(last=False)
        return known

    def forget(self, document_id: str) -> None:
        """Lets go of a document that was deleted."""
        with self._lock:
            known = self._open.pop(document_id, None)
        if known is not None:
            self._pictures.forget(known._file)
