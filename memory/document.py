"""A document: one canonical text, and everything else as spans in it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a document's canonical text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span runs forwards from 0 on; got {self.start} to {self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def __bool__(self) -> bool:
        return True

    def overlaps(self, other: "Span") -> bool:
        """Whether they share a character."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: "Span") -> bool:
        """Whether the other lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def of(self, text: str) -> str:
        """The characters themselves."""
        return text[self.start : self.end]


PageSource = Literal["text", "ocr", "blank", "unread"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the file has it, or a part (an EPUB's file) where the format has no pages.

    Attributes:
        index: Physical position, from 0.
        label: What is printed on it ("xii", "43"); empty where unknown.
        span: Its text; empty where nothing could be read.
        source: How its text was had: the file's own text, OCR, nothing because it is "blank",
            or nothing although something is there ("unread", see the document's problems).
    """

    index: int
    label: str
    span: Span
    source: PageSource = "text"


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter or section, from the table of contents or headings.

    Attributes:
        title: As it stands in the document.
        level: 1 is the highest.
        span: From its heading to where the next section of the same or a higher level begins.
    """

    title: str
    level: int
    span: Span


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read as it should, in words for the person.

    Attributes:
        what: What happened.
        remedy: What the person can do.
        page: Physical index from 0, or None where it concerns the whole document.
    """

    what: str
    remedy: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document that has been read.

    Attributes:
        id: SHA-256 of the file's bytes, hexadecimal.
        name: The file's name as it was added.
        title: From the file's metadata or first heading, else the name.
        media_type: For example "application/pdf".
        text: The canonical text: NFC, a line feed per line end, a blank line between paragraphs.
        pages: In order, tiling nothing more than ``text``; at least one.
        sections: In order of their start; nested ones follow their parent.
        problems: What could not be read.
        paged: Whether ``pages`` are pages that a person can turn to, not parts of a file.
        size_bytes: Of the file.
        language: ISO 639-1 code where known, else empty.
    """

    id: str
    name: str
    title: str
    media_type: str
    text: str = field(repr=False)
    pages: Sequence[Page] = field(repr=False)
    sections: Sequence[Section] = field(repr=False, default=())
    problems: Sequence[Problem] = ()
    paged: bool = False
    size_bytes: int = 0
    language: str = ""

    @property
    def pages_read(self) -> int:
        """How many pages were read; blank ones count, nothing is missing from them."""
        return sum(page.source != "unread" for page in self.pages)

    def page_at(self, offset: int) -> Page:
        """The page that holds a character."""
        place = bisect_right(self.pages, offset, key=_page_start) - 1
        while place > 0 and not len(self.pages[place].span):
            place -= 1
        return self.pages[max(place, 0)]

    def section_path(self, offset: int) -> tuple[str, ...]:
        """Titles of the sections around a character, the highest first."""
        path: list[str] = []
        place = bisect_right(self.sections, offset, key=_section_start)
        while place > 0:
            place -= 1
            section = self.sections[place]
            if offset < section.span.end:
                path.append(section.title)
                if section.level == 1:
                    break
        return tuple(reversed(path))


def _page_start(page: Page) -> int:
    return page.span.start


def _section_start(section: Section) -> int:
    return section.span.start
